"""Accuracy and loss of a model on a test set."""

from dataclasses import dataclass

import torch
from torch.nn import functional

from fedsbc.flat_model import FlatModel
from fedsbc.training.batches import Samples, as_samples, take
from fedsbc.training.determinism import make_deterministic


@dataclass(frozen=True)
class Evaluation:
    """How good a model is on a set of samples.

    Attributes:
        accuracy: share of samples whose largest output is their class, in [0, 1]; 0.0 of none.
        loss: mean cross entropy, in nats; 0.0 of none.
        num_samples: number of samples.
    """

    accuracy: float
    loss: float
    num_samples: int


def evaluate(model: FlatModel, x: Samples, y: Samples, *, batch_size: int = 500) -> Evaluation:
    """Evaluate a model as it is, on one thread, and leave no trace.

    Weights, buffers, the training mode and torch's generator stay as they were.

    Args:
        model: the model with the weights to evaluate.
        x: normalised samples, float32, shape (N, channels, height, width).
        y: class numbers, int64, shape (N,).
        batch_size: samples at a time. The loss is summed in float64, batch by batch.
    """
    make_deterministic(model.device)
    samples, labels = as_samples(x), as_samples(y)
    modes = {module: module.training for module in model.module.modules()}
    model.module.eval()
    try:
        num_right, loss = _run(model, samples, labels, batch_size)
    finally:
        for module, mode in modes.items():
            module.training = mode
    num_samples = len(labels)
    return Evaluation(num_right / max(1, num_samples), loss / max(1, num_samples), num_samples)


@torch.inference_mode()
def _run(model: FlatModel, x: torch.Tensor, y: torch.Tensor, batch_size: int) -> tuple[int, float]:
    """Return the number of right answers and the summed loss."""
    num_right, loss = 0, 0.0
    for start in range(0, len(y), batch_size):
        rows = torch.arange(start, min(start + batch_size, len(y)), device=x.device)
        outputs = model.module(take(x, rows).to(model.device))
        labels = y.index_select(0, rows).to(model.device)
        num_right += int((outputs.argmax(1) == labels).sum())
        loss += float(functional.cross_entropy(outputs, labels, reduction="sum"))
    return num_right, loss
