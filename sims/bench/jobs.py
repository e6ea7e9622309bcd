"""The jobs of `fedsbc bench engine`, their data, and what the contenders get to read."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

NUM_CLIENTS = 400
NUM_WORKERS = 2
LOCAL_STEPS, BATCH_SIZE, LR = 10, 10, 0.05
NUM_TRAIN, NUM_TEST = 60_000, 100
"""MNIST's train set; hardly anything to evaluate, since nobody else does."""


@dataclass(frozen=True)
class Job:
    """What is run.

    Attributes:
        name: A1, A2 or A3.
        model: `lenet5-caffe` or `mlp` (784-64-10).
        clients: of the run.
        cohort: clients of a round.
        rounds: of one run; the first is start-up.
    """

    name: str
    model: str
    clients: int
    cohort: int
    rounds: int

    def for_rivals(self, data: Path, log: Path) -> dict[str, Any]:
        """Return the job as the programs in `runtimes` read it."""
        return {
            "model": self.model,
            "clients": self.clients,
            "cohort": self.cohort,
            "rounds": self.rounds,
            "local_steps": LOCAL_STEPS,
            "batch_size": BATCH_SIZE,
            "lr": LR,
            "workers": NUM_WORKERS,
            "data": str(data),
            "log": str(log),
        }

    def as_config(self, data: Path, upstream: dict[str, Any]) -> str:
        """Return the job as a config of ours; JSON is YAML."""
        return json.dumps(
            {
                "name": f"bench-{self.name}",
                "data": {"name": "npz", "path": str(data), "partition": {"kind": "iid"}},
                "model": {"name": self.model} | ({"hidden": 64} if self.model == "mlp" else {}),
                "clients": {
                    "count": self.clients,
                    "local_steps": LOCAL_STEPS,
                    "batch_size": BATCH_SIZE,
                    "optimizer": {"name": "sgd", "lr": LR},
                },
                "rounds": self.rounds,
                "participation": self.cohort / self.clients,
                "upstream": upstream,
                "engine": {"actors": NUM_WORKERS},
                "evaluate": {"every": self.rounds},
            }
        )


def jobs(clients: int, rounds: int | None) -> dict[str, Job]:
    """Return the jobs by name.

    Args:
        clients: 400 for the figures of the documentation; a tenth of them is the smaller cohort.
        rounds: of each run; None: enough for 10 to 40 s of training.
    """
    few = max(1, clients // 10)
    return {
        "A1": Job("A1", "lenet5-caffe", clients, few, rounds or 16),
        "A2": Job("A2", "lenet5-caffe", clients, clients, rounds or 6),
        "A3": Job("A3", "mlp", clients, few, rounds or 200),
    }


def write_data(path: Path) -> None:
    """Write MNIST-shaped noise, with labels that can be learned from it."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (NUM_TRAIN + NUM_TEST, 28, 28), np.uint8)
    y = rng.integers(0, 10, len(x))
    x[np.arange(len(x)), y] = 255  # one bright line says the class
    n = NUM_TEST
    np.savez(path, x_train=x[n:], y_train=y[n:], x_test=x[:n], y_test=y[:n])
