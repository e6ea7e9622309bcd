"""The Rice code of many runs of whole numbers at once, each run with its own parameter.

A number s with parameter b is s >> b ones, a zero, and the b low bits of s: Algorithm 3 of the
SBC paper with s = gap - 1. The ones and zeros of all runs lie in one run of bits (unary), the
low bits in another (remainders), grouped by parameter: the length is that of the interleaved
code, and both ends work on whole arrays.

Source: Sattler et al., Sparse Binary Compression (arXiv 1805.08768), Algorithms 3 and 4;
    deviation: the order of the bits, as said.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsbc.coding.runs import (
    Symbols,
    fixed_bytes,
    num_bytes,
    pack_fixed,
    run_maxima,
    run_sums,
    unpack_fixed,
)
from fedsbc.errors import WireError
from fedsbc.lazy import lazy


@dataclass(frozen=True)
class Runs:
    """How a sequence of numbers is cut into runs.

    Attributes:
        lengths: numbers in each run, shape (n,), int64.
        parameters: Rice parameter of each run, shape (n,), int64, 0 to 31.
    """

    lengths: NDArray[np.int64]
    parameters: NDArray[np.int64]

    @lazy
    def total(self) -> int:
        """Numbers in all runs."""
        return int(self.lengths.sum())

    @lazy
    def groups(self) -> dict[int, list[slice]]:
        """Where the numbers with each parameter above 0 lie, parameters ascending."""
        found: dict[int, list[slice]] = {}
        start = 0
        for length, parameter in zip(self.lengths.tolist(), self.parameters.tolist(), strict=True):
            if length and parameter:
                where = found.setdefault(parameter, [])
                joined = where.pop().start if where and where[-1].stop == start else start
                where.append(slice(joined, start + length))
            start += length
        return dict(sorted(found.items()))

    @lazy
    def remainder_bytes(self) -> int:
        """Bytes of all remainders."""
        return sum(fixed_bytes(_count(where), width) for width, where in self.groups.items())

    def spread(self, per_run: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Repeat a value per run for each number of the run; shape (1,) if all are equal."""
        used = per_run[self.lengths > 0]
        if used.size == 0 or (used == used[0]).all():
            return used[:1].astype(np.uint32)
        return np.repeat(per_run.astype(np.uint32), self.lengths)


def _count(where: list[slice]) -> int:
    return sum(piece.stop - piece.start for piece in where)


def run_bits(symbols: Symbols, runs: Runs) -> NDArray[np.int64]:
    """Return the bits of each run, shape (number of runs,), int64."""
    quotients = symbols >> runs.spread(runs.parameters)
    return run_sums(quotients, runs.lengths) + runs.lengths * (1 + runs.parameters)


def encode(symbols: Symbols, runs: Runs) -> tuple[bytes, bytes]:
    """Return the remainders and the unary parts of all runs.

    Args:
        symbols: the numbers of all runs end to end, shape (n,), uint32.
        runs: their lengths and parameters.
    """
    assert len(symbols) == runs.total
    ends = (symbols >> runs.spread(runs.parameters)).astype(np.int64)  # of each unary part
    ends += 1
    np.cumsum(ends, out=ends)
    unary = np.ones(1 + (ends[-1] if len(ends) else 0), np.uint8)
    unary[ends] = 0
    parts = []
    for width, where in runs.groups.items():
        pieces = [symbols[piece] for piece in where]
        parts.append(pack_fixed(pieces[0] if len(pieces) == 1 else np.concatenate(pieces), width))
    return b"".join(parts), np.packbits(unary[1:]).tobytes()


def find_stops(unary: memoryview, count: int, max_bits: int) -> NDArray[np.int64]:
    """Return the places of the `count` zeros that end the unary parts, shape (count,).

    Args:
        unary: the run of bits, with its padding and nothing after it.
        count: numbers that it holds.
        max_bits: the most bits that it may have; checked before anything is allocated.

    Raises:
        WireError: too long, too short, or padded with anything but zero bits.
    """
    if len(unary) > num_bytes(max_bits):
        raise WireError(
            f"{len(unary)} bytes of unary code where {num_bytes(max_bits)} are possible"
        )
    zeros = np.unpackbits(~np.frombuffer(unary, np.uint8)).view(np.bool_)
    num_zeros = int(np.count_nonzero(zeros))
    if not count <= num_zeros <= count + 7:
        raise WireError(f"{num_zeros} ends of unary code where {count} numbers were announced")
    stops = np.flatnonzero(zeros)[:count]
    used = int(stops[-1]) + 1 if count else 0
    if num_bytes(used) != len(unary) or len(zeros) - used != num_zeros - count:
        raise WireError("padding after the unary code is not zero")
    return stops


def decode(
    remainders: memoryview, quotients: NDArray[np.int64], runs: Runs, max_symbols: NDArray[np.int64]
) -> Symbols:
    """Return the numbers of all runs, shape (n,), uint32.

    Args:
        remainders: as `encode` returned them.
        quotients: the unary parts, as `steps` counts them between the stops of `find_stops`.
        runs: lengths and parameters.
        max_symbols: the largest number that each run may hold, shape (number of runs,).

    Raises:
        WireError: a number is too large, or padding is not zero.
    """
    assert len(quotients) == runs.total
    if (run_maxima(quotients, runs.lengths) > max_symbols >> runs.parameters).any():
        raise WireError("a coded number is larger than the tensor allows")
    symbols = quotients.astype(np.uint32)
    start = 0
    for width, where in runs.groups.items():
        count = _count(where)
        end = start + fixed_bytes(count, width)
        lows = unpack_fixed(remainders[start:end], count, width)
        start, used = end, 0
        for piece in where:
            symbols[piece] <<= np.uint32(width)
            symbols[piece] |= lows[used : used + piece.stop - piece.start]
            used += piece.stop - piece.start
    return symbols
