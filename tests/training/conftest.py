from dataclasses import dataclass, field

import numpy as np
import pytest

from fedsbc import data, models
from fedsbc.flat_model import FlatModel
from fedsbc.training import options_for_optimizer, options_for_schedule
from fedsbc.training.trainer import Trainer


@dataclass
class Clients:
    local_steps: int | None = 3
    batch_size: int = 10
    optimizer: object = field(default_factory=lambda: options_for_optimizer("sgd")(lr=0.05))
    schedule: object = field(default_factory=options_for_schedule("constant"))


@pytest.fixture(scope="session")
def digits():
    return data.load(data.options_for("mnist-5k")())


class Bench:
    """A trainer with a start, and short calls."""

    def __init__(self, name="mlp", local_epochs=None, module=None, **clients):
        module = models.build(models.options_for(name)(), 0) if module is None else module
        self.model = FlatModel(module)
        self.base, self.buffers = self.model.weights.copy(), self.model.buffers.copy()
        self.trainer = Trainer(self.model, Clients(**clients), local_epochs=local_epochs)

    def train(self, digits, rows=range(30), client_id=0, round=1, **changes):
        arguments = {"seed": 7, "first_step": 0, "rows": np.array(rows, np.int64)} | changes
        x, y = digits.train_tensors()
        return self.trainer.train(
            self.base, self.buffers, x, y, client_id=client_id, round=round, **arguments
        )


@pytest.fixture
def bench():
    return Bench
