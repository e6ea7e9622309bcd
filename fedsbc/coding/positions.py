"""The named codings of sorted positions, and which of them is the shortest for a tensor.

| coding | id | bits of k positions out of n |
|---|---|---|
| rice | 0 | k (1 + b) + the sum of (gap - 1) >> b |
| bitmap | 1 | n |
| all | 2 | 0; only where k = n |

A coding is one byte on the wire: its id times 32 plus its parameter (b for rice, else 0). A
tensor without a position has coding 0. New codings take the free ids; none is ever reused.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from fedsbc.coding.formulas import rice_parameters
from fedsbc.coding.rice import Runs, run_bits
from fedsbc.coding.runs import Symbols, steps

Codes = NDArray[np.uint8]
"""One coding byte per tensor, shape (n,)."""


class Coding(IntEnum):
    """The ids of the codings; they never change."""

    RICE = 0
    BITMAP = 1
    ALL = 2


def code_of(coding: Coding, parameter: int = 0) -> int:
    """Return the wire byte of a coding.

    >>> code_of(Coding.RICE, 6)
    6
    """
    assert 0 <= parameter < 32
    return coding * 32 + parameter


def coding_ids(codes: Codes) -> NDArray[np.int64]:
    """Return the id in each wire byte, shape as given."""
    return (codes >> 5).astype(np.int64)


def parameters(codes: Codes) -> NDArray[np.int64]:
    """Return the parameter in each wire byte, shape as given."""
    return (codes & 31).astype(np.int64)


def gaps(positions: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return gap - 1 of the sorted positions of many tensors, end to end, shape (k,).

    The first gap of a tensor is counted from -1. A negative result tells that the positions of
    a tensor are not strictly increasing.
    """
    between = steps(positions)
    starts = (np.cumsum(counts) - counts)[counts > 0]
    between[starts] = positions[starts]
    return between


def from_gaps(symbols: Symbols, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Undo `gaps`: return the positions, shape (k,), int64."""
    filled = counts[counts > 0]
    positions = symbols.astype(np.int64)
    positions += 1
    if len(filled) > 1:
        first = np.cumsum(filled) - filled
        ends = np.add.reduceat(positions, first)
        positions[first[1:]] -= ends[:-1]  # so that one running sum begins anew with each tensor
    np.cumsum(positions, out=positions)
    positions -= 1
    return positions


def choose(symbols: Symbols, counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> Codes:
    """Return the shortest coding of each tensor, shape (n,), uint8; the lowest id among equals.

    Args:
        symbols: what `gaps` returned.
        counts: positions of each tensor, shape (n,).
        sizes: entries of each tensor, shape (n,).

    Source: Sattler et al. (arXiv 1805.08768), Algorithm 3 for b*; the density is the tensor's
        real one, k / n.
    """
    b = rice_parameters(counts / np.maximum(sizes, 1))
    b[counts == 0] = 0
    rice_bits = run_bits(symbols, Runs(counts, b))
    codes = np.where(sizes < rice_bits, code_of(Coding.BITMAP), b)
    codes[(counts == sizes) & (counts > 0)] = code_of(Coding.ALL)
    return codes.astype(np.uint8)


def coded_bits(
    symbols: Symbols, counts: NDArray[np.int64], sizes: NDArray[np.int64], codes: Codes
) -> NDArray[np.int64]:
    """Return the bits of the positions of each tensor in the given codings, shape (n,)."""
    ids = coding_ids(codes)
    bits = run_bits(symbols, Runs(counts, parameters(codes)))
    return np.where(ids == Coding.ALL, 0, np.where(ids == Coding.BITMAP, sizes, bits))
