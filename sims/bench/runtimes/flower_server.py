"""The same job as a Flower ServerApp: FedAvg of Flower's own."""

from collections.abc import Iterable

from flwr.app import ArrayRecord, Context, Message, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from . import task

app = ServerApp()


class Logged(FedAvg):
    """FedAvg that writes a line at the end of each round, and never loses a client in silence."""

    def __init__(self, job: task.Job) -> None:
        share = job["cohort"] / job["clients"]
        super().__init__(fraction_train=share, fraction_evaluate=0.0)
        self._job = job

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Check that all clients answered, average, and note the end of the round."""
        received = list(replies)
        failed = [reply for reply in received if reply.has_error()]
        if failed or len(received) != self._job["cohort"]:
            raise RuntimeError(f"{len(received)} replies, {len(failed)} of them errors")
        result = super().aggregate_train(server_round, received)
        task.round_done(self._job)
        return result


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Play the rounds of a job."""
    job = task.read(str(context.run_config["job"]))
    arrays = ArrayRecord(task.module(job).state_dict())
    Logged(job).start(grid, arrays, num_rounds=job["rounds"])
