"""Small runs on disk, whose figures the tests can work out by hand."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fedsbc.ledger import Ledger, LedgerRow
from fedsbc.ledger_row import Direction
from fedsbc.records import RoundRecord, Summary
from fedsbc.run_folder import RunFolder

NUM_PARAMS = 1000
DENSE_BITS = 32 * NUM_PARAMS
CLIENTS = (3, 5)
ACCURACIES = {1: 0.25, 2: None, 3: 0.75, 4: 0.5}
"""Of each round."""


def message(round: int, client_id: int, direction: Direction, bits: int) -> LedgerRow:
    return LedgerRow(
        round, client_id, direction, "train", 10, bits - 40, 32, 8, 0, bits, bits + 80, DENSE_BITS
    )


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunFolder]:
    """Make a run of four rounds with two clients; bits are those of one message."""

    def make(
        name: str,
        *,
        path: str | None = None,
        up_bits: int = 320,
        down_bits: int = DENSE_BITS + 48,
        second_s: float = 0.0,
        ended: bool = True,
        settings: str = "",
    ) -> RunFolder:
        text = f"name: {name!r}\nseed: 0\n{settings}"
        folder = RunFolder.create(tmp_path / (path or name), text)
        ledger = Ledger()
        for round, accuracy in ACCURACIES.items():
            for client_id in CLIENTS:
                ledger.add(message(round, client_id, "down", down_bits))
                ledger.add(message(round, client_id, "up", up_bits))
            sums = (2 * up_bits, 2 * down_bits)
            folder.append_round(
                RoundRecord(round, accuracy, None, None, *sums, second_s, 0.5, 2, 0)
            )
        folder.write_ledger(ledger)
        if ended:
            folder.write_summary(_summary(name, ledger, 4 * second_s))
        return folder

    return make


def _summary(name: str, ledger: Ledger, simulated_s: float) -> Summary:
    totals = ledger.run_totals()
    return Summary(
        name=name,
        rounds=4,
        final_accuracy=0.5,
        best_accuracy=0.75,
        up_bits=totals.up.payload_bits,
        down_bits=totals.down.payload_bits,
        up_ratio_dsgd=ledger.up_ratio_dsgd(10),
        up_ratio_fedavg=totals.up_ratio_fedavg,
        down_ratio_fedavg=totals.down_ratio_fedavg,
        simulated_s=simulated_s,
        wall_s=2.0,
        num_params=NUM_PARAMS,
        model_sha256="0" * 64,
        failures=0,
        completed=True,
    )
