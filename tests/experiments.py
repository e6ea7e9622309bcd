"""Small experiments for tests."""

from pathlib import Path

import numpy as np

from fedsbc import config as configs
from fedsbc import models
from fedsbc.config import Config
from fedsbc.flat_model import FlatModel, model_sha256
from fedsbc.run_folder import named_tensors
from strategies.strategy import CompressedStrategy, array_record

SMALL = Path(__file__).parent / "small.yaml"


def small(*overrides: str) -> Config:
    """Return a config that runs in a second: an MLP, 8 clients, all of them in every round."""
    return configs.load(SMALL, overrides)


def initial(config: Config) -> tuple[FlatModel, dict[str, np.ndarray]]:
    """Return a model with its first weights, and those as named arrays."""
    model = FlatModel(models.build(config.model, config.seed))
    tensors = dict(named_tensors(model.layout, model.weights))
    tensors.update(named_tensors(model.buffer_layout, model.buffers))
    return model, tensors


def initial_hash(config: Config) -> str:
    """Return the hash of the model before the first round."""
    model, _ = initial(config)
    return model_sha256(model.weights, model.buffers)


def play(
    config: Config, grid, journal=None, rounds: int | None = None, evaluate_fn=None
) -> CompressedStrategy:
    """Run the strategy on a grid and return it with its outcome."""
    model, tensors = initial(config)
    names = [t.name for t in model.buffer_layout.tensors]
    strategy = CompressedStrategy(config, buffer_names=names, journal=journal)
    strategy.start(grid, array_record(tensors), num_rounds=rounds, evaluate_fn=evaluate_fn)
    return strategy


class Notes:
    """A journal that remembers."""

    def __init__(self) -> None:
        self.failures: list[tuple[int, int | None, str]] = []
        self.payloads: dict[str, bytes] = {}
        self.records = []
        self.said: list[str] = []

    def note(self, text):
        self.said.append(text)

    def failure(self, round, client_id, reason):
        self.failures.append((round, client_id, reason.strip().splitlines()[-1]))

    def payload(self, round, name, data):
        self.payloads[f"{round}-{name}"] = data

    def round_done(self, record, ledger):
        self.records.append(record)
