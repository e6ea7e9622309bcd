"""The server: three rounds, then the accuracy on digits that no client has seen."""

import json
from pathlib import Path

from flwr.app import Array, ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

from digits.compression import CONFIG
from digits.model import accuracy, initial_parameters, samples
from strategies.strategy import CompressedStrategy

app = ServerApp()


def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    parameters = {name: array.numpy() for name, array in arrays.items()}
    return MetricRecord({"accuracy": accuracy(parameters, *samples(seed=12345))})


@app.main()
def main(grid: Grid, context: Context) -> None:
    initial = ArrayRecord({n: Array(v) for n, v in initial_parameters().items()})
    strategy = CompressedStrategy(CONFIG)
    result = strategy.start(grid, initial, num_rounds=3, evaluate_fn=evaluate)
    metrics = result.evaluate_metrics_serverapp[3]
    up = strategy.outcome.ledger.totals("up")
    outcome = {"accuracy": metrics["accuracy"], "up-bits": up.payload_bits}
    print(f"after 3 rounds: {outcome}")
    if context.run_config["out"]:
        Path(context.run_config["out"]).write_text(json.dumps(outcome))
