"""Runs of bits: flags and whole numbers of one width, many at a time, byte by byte exact.

A run starts at a byte and its last byte is padded with zero bits; a reader refuses any other
padding, so that one content has one byte string.
"""

import numpy as np
from numpy.typing import NDArray

from fedsbc.errors import WireError

Symbols = NDArray[np.uint32]
"""Whole numbers in [0, 2**32), shape (n,)."""

# Lane masks of the three steps that close up eight bytes of `width` bits each in one word.
_HIGH_LANES = (0xFF00FF00FF00FF00, 0xFFFF0000FFFF0000, 0xFFFFFFFF00000000)
_LOW_LANES = (0x00FF00FF00FF00FF, 0x0000FFFF0000FFFF, 0x00000000FFFFFFFF)


FEW = 2000
"""So many numbers are packed bit by bit: for more of them whole words are faster."""


def num_bytes(bits: int) -> int:
    """Return the bytes that `bits` bits take, the last one padded."""
    return (bits + 7) // 8


def pack_flags(flags: NDArray[np.bool_]) -> bytes:
    """Pack flags of shape (n,) into a run of n bits, the first flag in the highest bit."""
    return np.packbits(flags).tobytes()


def unpack_flags(data: memoryview, count: int) -> NDArray[np.bool_]:
    """Return the `count` flags of a run of exactly as many bits.

    Raises:
        WireError: the padding is not zero.
    """
    assert len(data) == num_bytes(count)
    flags = np.unpackbits(np.frombuffer(data, np.uint8)).view(np.bool_)
    if flags[count:].any():
        raise WireError("padding after a run of flags is not zero")
    return flags[:count]


def fixed_bytes(count: int, width: int) -> int:
    """Return the bytes of `pack_fixed` for `count` numbers of `width` bits."""
    return num_bytes(count * (width % 8)) + count * (width // 8)


def pack_fixed(values: Symbols, width: int) -> bytes:
    """Pack the low `width` bits (0 to 32) of each number.

    The bits above the last whole bytes come first, closed up; then one plane of bytes for each
    eight bits, the highest plane first. The number of bits is that of any other order.

    Args:
        values: shape (n,), uint32; bits above `width` are ignored.
        width: bits of each number.
    """
    head, planes = width % 8, width // 8
    parts = []
    if head:
        top = (values >> np.uint32(8 * planes)).astype(np.uint8) & np.uint8((1 << head) - 1)
        parts.append(_close_up(top, head))
    parts += [
        (values >> np.uint32(8 * p)).astype(np.uint8).tobytes() for p in reversed(range(planes))
    ]
    return b"".join(parts)


def unpack_fixed(data: memoryview, count: int, width: int) -> Symbols:
    """Return the `count` numbers of `width` bits that `pack_fixed` packed, shape (count,).

    Raises:
        WireError: the padding is not zero.
    """
    assert len(data) == fixed_bytes(count, width)
    head, planes = width % 8, width // 8
    values = np.zeros(count, np.uint32)
    start = num_bytes(count * head)
    if head:
        values[:] = _spread(data[:start], count, head)
    for _ in range(planes):
        plane = np.frombuffer(data, np.uint8, count, start)
        values <<= np.uint32(8)
        values |= plane
        start += count
    return values


def _close_up(values: NDArray[np.uint8], width: int) -> bytes:
    """Pack numbers of `width` (1 to 7) bits end to end, the highest bit of each first."""
    if len(values) <= FEW:
        bits = np.unpackbits(values).reshape(-1, 8)
        return np.packbits(bits[:, 8 - width :]).tobytes()
    return _close_up_words(values, width)


def _close_up_words(values: NDArray[np.uint8], width: int) -> bytes:
    """Pack numbers as `_close_up`: eight of them are `width` bytes of one word."""
    count = len(values)
    padded = np.zeros(-(-count // 8) * 8, np.uint8)
    padded[:count] = values
    words = padded.view(">u8").astype(np.uint64)
    for step, (high, low) in enumerate(zip(_HIGH_LANES, _LOW_LANES, strict=True)):
        shift = np.uint64((8 - width) << step)
        words = ((words & np.uint64(high)) >> shift) | (words & np.uint64(low))
    words <<= np.uint64(64 - 8 * width)
    packed = words.astype(">u8").view(np.uint8).reshape(-1, 8)[:, :width]
    return packed.tobytes()[: num_bytes(count * width)]


def _spread(data: memoryview, count: int, width: int) -> NDArray[np.uint8]:
    """Undo `_close_up`.

    Raises:
        WireError: the padding is not zero.
    """
    if count > FEW:
        return _spread_words(data, count, width)
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    values = np.zeros((count, 8), np.uint8)
    values[:, 8 - width :] = bits[: count * width].reshape(count, width)
    _check_padding(bits[count * width :])
    return np.packbits(values)


def _spread_words(data: memoryview, count: int, width: int) -> NDArray[np.uint8]:
    """Undo `_close_up_words`."""
    num_words = -(-count // 8)
    packed = np.zeros(num_words * width, np.uint8)
    packed[: len(data)] = np.frombuffer(data, np.uint8)
    rows = np.zeros((num_words, 8), np.uint8)
    rows[:, :width] = packed.reshape(-1, width)
    words = rows.view(">u8").ravel().astype(np.uint64) >> np.uint64(64 - 8 * width)
    for step in (2, 1, 0):
        shift, low = (8 - width) << step, _LOW_LANES[step] & ~(_LOW_LANES[step] << (width << step))
        spread = (words << np.uint64(shift)) & np.uint64(_HIGH_LANES[step])
        words = spread | (words & np.uint64(low))
    values = words.astype(">u8").view(np.uint8)
    _check_padding(values[count:])
    return values[:count]


def _check_padding(rest: NDArray[np.uint8]) -> None:
    if rest.any():
        raise WireError("padding after a run of numbers is not zero")


def run_sums(values: NDArray[np.integer], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum of each run of values laid end to end, shape (number of runs,).

    >>> run_sums(np.array([1, 2, 3]), np.array([2, 0, 1])).tolist()
    [3, 0, 3]
    """
    return _reduced(np.add, values, lengths)


def run_maxima(values: NDArray[np.integer], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the maximum of each run of values of at least 0, 0 of an empty one.

    >>> run_maxima(np.array([1, 2, 3]), np.array([2, 0, 1])).tolist()
    [2, 0, 3]
    """
    return _reduced(np.maximum, values, lengths)


def _reduced(
    ufunc: np.ufunc, values: NDArray[np.integer], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    reduced = np.zeros(len(lengths), np.int64)
    filled = lengths > 0
    if len(values):
        starts = np.cumsum(lengths)
        starts -= lengths
        reduced[filled] = ufunc.reduceat(values.astype(np.int64, copy=False), starts[filled])
    return reduced


def steps(increasing: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many whole numbers lie between each of a sequence and the one before it.

    The first is counted from -1; a sequence that does not increase gives a negative number.

    >>> steps(np.array([0, 1, 5])).tolist()
    [0, 0, 3]
    """
    between = np.empty_like(increasing)
    between[:1] = increasing[:1]
    np.subtract(increasing[1:], increasing[:-1], out=between[1:])
    between[1:] -= 1
    return between
