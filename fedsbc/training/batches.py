"""Which samples make up the batches of a round.

A client goes through its samples in shuffled epochs: a permutation is cut into batches, the last
one holds what is left, and when it is used up the next permutation is drawn. A round starts with
a fresh permutation from the generator of (seed, `Stream.BATCHES`, client, round).

BatchNorm cannot train on one sample. For a model with BatchNorm a last batch of one joins the
batch before it. Where there is none before it (one sample in all, or batches of one), the step
is taken with the stored statistics, which then stay as they are.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from fedsbc.arrays import ALIGNMENT_BYTES
from fedsbc.flat_model import as_tensor

Rows = NDArray[np.int64]
"""Row numbers, int64, shape (n,)."""

Samples: TypeAlias = NDArray[Any] | torch.Tensor
"""Samples or labels: an array or a tensor, also in read-only shared memory."""

GATHER_BYTES = 2**20
"""Of samples that are copied at once: they stay in the cache until they are trained on."""


def num_batches(num_samples: int, batch_size: int, join_single: bool) -> int:
    """Return the number of batches of one epoch; 0 without samples."""
    count = -(-num_samples // batch_size)
    return count - 1 if _joins(num_samples, batch_size, join_single) else count


def batches(
    num_samples: int, batch_size: int, generator: np.random.Generator, join_single: bool
) -> Iterator[Rows]:
    """Yield the sample numbers of one batch after the other, without end.

    Args:
        num_samples: samples of the client, 1 and up.
        batch_size: samples a batch, except for the last of an epoch.
        generator: where the permutations come from.
        join_single: a last batch of one sample joins the one before it.
    """
    assert num_samples > 0, "an empty client has no batches"
    is_joined = _joins(num_samples, batch_size, join_single)
    last_start = (num_samples - 1 - is_joined) // batch_size * batch_size
    while True:
        order = generator.permutation(num_samples)
        for start in range(0, last_start, batch_size):
            yield order[start : start + batch_size]
        yield order[last_start:]


def as_samples(samples: Samples) -> torch.Tensor:
    """Return samples as a tensor of the same memory."""
    return as_tensor(samples) if isinstance(samples, np.ndarray) else samples


def gather(
    x: torch.Tensor, y: torch.Tensor, rows: Rows, order: Iterable[Rows], device: torch.device
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield the samples and labels of each batch on a device, several batches out of one copy.

    Batches begin at multiples of 64 bytes, as fresh tensors do, or each is a copy of its own:
    their alignment can change the bytes that training gives.

    Args:
        x: samples, shape (N, ...).
        y: labels, shape (N,).
        rows: the client's rows in x and y.
        order: the batches, as numbers of the client's samples.
        device: where the copies go.
    """
    sample_bytes = x[:1].nbytes
    limit = 0 if sample_bytes % ALIGNMENT_BYTES else GATHER_BYTES // max(1, sample_bytes)
    for group in _groups(order, limit):
        chosen = torch.from_numpy(rows[np.concatenate(group)]).to(x.device)
        lengths = [len(batch) for batch in group]
        samples, labels = take(x, chosen).to(device), y.index_select(0, chosen).to(device)
        yield from zip(torch.split(samples, lengths), torch.split(labels, lengths), strict=True)


def _groups(order: Iterable[Rows], limit: int) -> Iterator[list[Rows]]:
    """Join batches up to so many samples; a larger batch stays by itself."""
    group: list[Rows] = []
    count = 0
    for batch in order:
        if group and count + len(batch) > limit:
            yield group
            group, count = [], 0
        group.append(batch)
        count += len(batch)
    if group:
        yield group


def take(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return the samples of those rows, images with their channels last in memory.

    The shape is (n, channels, height, width) as before. On a CPU convolutions and pooling are
    much faster with this order, and it costs nothing while the samples are copied.
    """
    if x.dim() != 4:
        return x.index_select(0, rows)
    return x.permute(0, 2, 3, 1).index_select(0, rows).permute(0, 3, 1, 2)


def _joins(num_samples: int, batch_size: int, join_single: bool) -> bool:
    """Whether the last batch of an epoch joins the one before it."""
    return join_single and num_samples > batch_size > 1 and num_samples % batch_size == 1
