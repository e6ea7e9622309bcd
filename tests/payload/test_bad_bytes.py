"""Bytes that `encode` would not make: WireError and nothing else, and no memory for them."""

import math
import struct
import tracemalloc
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from fedsbc.errors import WireError
from fedsbc.layout import Layout
from fedsbc.payload import decode, encode, measure
from fedsbc.updates import QuantisedBlock, SparseMeanBlock, SparseSignBlock, Update
from tests.payload.frozen import load, update_of
from tests.payload.fuzz import accepts

CASES = {case["name"]: case for case in load()}
F32 = np.float32


def seal(data: bytes) -> bytes:
    """Return the bytes with the checksum that goes with them."""
    return (
        data[:12] + zlib.crc32(data[16:], zlib.crc32(data[:12])).to_bytes(4, "little") + data[16:]
    )


def changed(data: bytes, place: int, new: bytes) -> bytes:
    """Return the bytes with some of them replaced, sealed again."""
    return seal(data[:place] + new + data[place + len(new) :])


def refused(data: bytes, layout: Layout, match: str | None = None) -> None:
    with pytest.raises(WireError, match=match):
        decode(data, layout)


@pytest.mark.parametrize("name", CASES)
def test_truncated_and_extended(name: str) -> None:
    layout, data = update_of(CASES[name]).layout, bytes.fromhex(CASES[name]["hex"])
    for length in range(len(data)):
        refused(data[:length], layout)
        if length > 16:
            refused(seal(data[:length]), layout)
    for tail in (b"\0", b"\xff", bytes(9)):
        refused(data + tail, layout)
        refused(seal(data + tail), layout)


@pytest.mark.parametrize("name", CASES)
def test_every_flipped_bit_is_found(name: str) -> None:
    layout, data = update_of(CASES[name]).layout, bytes.fromhex(CASES[name]["hex"])
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        refused(bytes(flipped), layout)


@pytest.mark.parametrize("name", CASES)
def test_every_flipped_bit_behind_a_good_checksum(name: str) -> None:
    """It is refused, or it is another payload that is written exactly so."""
    layout, data = update_of(CASES[name]).layout, bytes.fromhex(CASES[name]["hex"])
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        accepts(seal(bytes(flipped)), layout)


LAYOUT = Layout.of([("a", (300,)), ("b", (40,))])
GOOD = encode(
    Update(
        LAYOUT,
        [
            SparseMeanBlock(300, np.array([7, 8, 299]), F32(0.5)),
            SparseMeanBlock(40, np.array([39]), F32(-1)),
        ],
    )
)
# 16: codings (2) | 18: counts (2 + 1) | 21: means (2 x 4) | 29: low bits, unary code
CODES, COUNTS, MEANS = 16, 18, 21


def float_bytes(value: float) -> bytes:
    return struct.pack("<f", value)


BAD: dict[str, tuple[bytes, str | None]] = {
    "empty": (b"", "shorter"),
    "magic": (changed(GOOD, 0, b"XX"), "FS"),
    "version": (changed(GOOD, 2, b"\x02"), "version 2"),
    "unknown kind": (changed(GOOD, 3, b"\x63"), "kind 99"),
    "mixed kinds that do not differ": (
        seal(GOOD[:3] + b"\0" + GOOD[4:16] + b"\3\3" + GOOD[16:]),
        "one possible way",
    ),
    "shared where nothing is": (changed(GOOD, 3, b"\x83"), None),
    "layout": (changed(GOOD, 4, b"\0" * 8), "layout"),
    "unknown coding": (changed(GOOD, CODES, b"\x60"), "unknown coding"),
    "bitmap with a parameter": (changed(GOOD, CODES, b"\x21"), "parameter"),
    "parameter too large": (changed(GOOD, CODES, b"\x0a"), "too large"),
    "all for some": (changed(GOOD, CODES, b"\x40"), "'all'"),
    "more than there are": (changed(GOOD, COUNTS, b"\x2d\x01"), "more entries"),
    "65535 of 300": (changed(GOOD, COUNTS, b"\xff\xff"), "more entries"),
    "one more than sent": (changed(GOOD, COUNTS, b"\x04\x00"), None),
    "coding of nothing": (changed(GOOD, COUNTS + 2, b"\x00"), "no position"),
    "nan": (changed(GOOD, MEANS, float_bytes(math.nan)), "nan"),
    "infinity": (changed(GOOD, MEANS, float_bytes(-math.inf)), "inf"),
    "mean of zero": (changed(GOOD, MEANS, float_bytes(0)), "mean"),
    "mean of minus zero": (changed(GOOD, MEANS, float_bytes(-0.0)), "mean"),
    "shared mean sent twice": (changed(GOOD, MEANS + 4, float_bytes(0.5)), "more than once"),
    "padding": (changed(GOOD, len(GOOD) - 1, bytes([GOOD[-1] | 1])), "padding|ends"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_bytes(what: str) -> None:
    data, match = BAD[what]
    refused(data, LAYOUT, match)


def test_a_position_past_the_end() -> None:
    longer, shorter = Layout.of([("a", (100,))]), Layout.of([("a", (99,))])
    data = encode(Update(longer, [SparseMeanBlock(100, np.array([5, 99]), F32(1))]))
    moved = seal(data[:4] + bytes.fromhex(shorter.hash) + data[12:])
    refused(moved, shorter, "past the end|larger")


def test_a_shared_mean_must_be_shareable() -> None:
    layout = Layout.single(300)
    data = encode(Update(layout, [SparseMeanBlock(300, np.array([5]), F32(1))]))
    refused(changed(data, 3, b"\x83"), layout, "share")


def test_levels_out_of_range() -> None:
    """Levels travel less one: 32766 is fe in the plane of the low eight bits, 32767 too large."""
    layout = Layout.single(4)
    block = QuantisedBlock(np.full(4, 32767, np.int16), np.ones(1, F32))
    data = encode(Update(layout, [block]))
    assert decode(data, layout).to_dense().tolist() == [32767] * 4
    refused(changed(data, data.index(b"\xfe" * 4), b"\xff"), layout, "level above|larger")


@pytest.mark.parametrize(
    ("name", "place", "new", "match"),
    [
        ("levels with zeros", 16, b"\x00", "positions of levels"),
        ("levels beyond one", 17, b"\x10", "coding of levels"),
        ("levels beyond one", 17, b"\x60", "coding of levels"),
        ("ternary levels", 17, b"\x21", "coding of levels"),
        ("levels in buckets", 20, b"\x11", "bucket size"),
        ("mixed kinds", 18, b"\x63", "kind"),
        ("mixed kinds", 18, b"\xff", "kind"),
        ("levels with zeros", 19, b"\x1d", "as announced|ends"),
    ],
)
def test_rows_of_kinds_and_levels(name: str, place: int, new: bytes, match: str) -> None:
    layout, data = update_of(CASES[name]).layout, bytes.fromhex(CASES[name]["hex"])
    refused(changed(data, place, new), layout, match)


def test_bitmaps_have_as_many_bits_as_announced() -> None:
    case = CASES["sbc, bitmap and all"]
    layout, data = update_of(case).layout, bytes.fromhex(case["hex"])
    place = 16 + 2 + 2 + 8
    refused(changed(data, place, bytes([data[place] | 0x80])), layout, "as announced")
    refused(changed(data, place + 2, bytes([data[place + 2] | 1])), layout, "padding")


def test_negative_zero_and_negative_sizes_of_means() -> None:
    layout = Layout.single(50)
    block = SparseSignBlock(50, np.array([3]), np.array([True]), F32(2))
    data = encode(Update(layout, [block]))
    place = data.index(float_bytes(2.0))
    for value in (-2.0, 0.0, -0.0, math.nan, math.inf):
        refused(changed(data, place, float_bytes(value)), layout, "mean")


def peak_bytes(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_large_counts_allocate_nothing() -> None:
    """4 million entries announced in 40 bytes: refused before memory is taken for them."""
    size = 4_000_000
    layout = Layout.single(size)
    good = encode(Update(layout, [SparseMeanBlock(size, np.array([9, size - 1]), F32(1))]))
    for count in (3, 1000, size - 1, size):
        data = changed(good, 17, count.to_bytes(3, "little"))
        assert peak_bytes(lambda data=data: decode(data, layout)) < 100_000
        assert peak_bytes(lambda data=data: measure(data, layout)) < 100_000


def test_long_payloads_are_refused_unread() -> None:
    layout = Layout.single(10)
    assert peak_bytes(lambda: decode(bytes(10_000_000), layout)) < 10_100_000
    data = memoryview(b"FS" + bytes(10_000_000))
    assert peak_bytes(lambda: decode(data, layout)) < 100_000


def test_unary_code_is_bounded_by_the_layout() -> None:
    """A long run of ones is no long array: its bytes are compared with the tensor first."""
    layout = Layout.single(1_000_000)
    good = encode(Update(layout, [SparseMeanBlock(1_000_000, np.array([9]), F32(1))]))
    data = seal(good + b"\xff" * 4_000_000)
    assert peak_bytes(lambda: decode(data, layout)) < 100_000


def test_measure_refuses_too() -> None:
    for data, _ in BAD.values():
        try:
            bits = measure(data, LAYOUT)
        except WireError:
            continue
        assert bits.payload_bits == 8 * len(data)
