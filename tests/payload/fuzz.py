"""Random and mutated payloads: only WireError, or bytes that are written again exactly so.

Run as a program for the full size:

    python -m tests.payload.fuzz --count 1000000
"""

import argparse
import resource
import sys
import time
import zlib
from dataclasses import dataclass, field

import numpy as np

from fedsbc.errors import WireError
from fedsbc.layout import Layout
from fedsbc.payload import decode, decode_and_measure, encode, measure
from fedsbc.payload.encoder import Choices
from fedsbc.payload.frame import unpack
from tests.payload.examples import DENSITIES, KINDS, SIZES, layout_of, random_update

POOL = 400  # payloads to mutate, made anew after every ROUND
ROUND = 20_000
WARM_UP = 2_000


@dataclass
class Tally:
    """What came of the payloads.

    Attributes:
        accepted: decoded, and equal to their bytes when encoded again.
        refused: WireError, by the first two words of the message.
        growth_bytes: growth of the peak resident memory after the warm-up.
        seconds: time that it took.
    """

    accepted: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    growth_bytes: int = 0
    seconds: float = 0.0

    @property
    def count(self) -> int:
        """Payloads that were tried."""
        return self.accepted + sum(self.refused.values())


def accepts(data: bytes, layout: Layout) -> bool:
    """Tell whether the bytes are a payload; if so, check that they are the one way to write it.

    Raises:
        Exception: anything but WireError: a fault of the decoder.
    """
    try:
        update = decode(data, layout)
    except WireError:
        return False
    table = unpack(data, layout).table
    written = encode(update, Choices(table.codes, table.level_codes))
    assert written == data, f"two byte strings for one update: {data.hex()} {written.hex()}"
    bits = measure(data, layout)
    assert bits.payload_bits == 8 * len(data)
    assert decode_and_measure(data, layout) == (update, bits)
    return True


def pool(rng: np.random.Generator) -> list[tuple[bytes, Layout]]:
    """Return valid payloads of all kinds, with their layouts."""
    made = []
    for _ in range(POOL):
        sizes = [int(size) for size in rng.choice(SIZES, rng.integers(0, 5))]
        kinds = [KINDS[i] for i in rng.integers(0, len(KINDS), rng.integers(1, 4))]
        update = random_update(rng, sizes, kinds, float(rng.choice(DENSITIES)))
        made.append((encode(update), update.layout))
    large = layout_of([300_000, 40, 0])
    for kind in KINDS:
        update = random_update(rng, [300_000, 40, 0], [kind], 0.001)
        made.append((encode(update), large))
    return made


def mutate(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Return the bytes with something wrong with them."""
    changed = bytearray(data)
    how = rng.integers(0, 7)
    place = int(rng.integers(0, len(data)))
    head = int(rng.integers(0, min(len(data), 40)))
    if how == 0:
        changed[place] ^= 1 << int(rng.integers(0, 8))
    elif how == 1:
        changed[head] = int(rng.integers(0, 256))
    elif how == 2:
        del changed[place:]
    elif how == 3:
        changed += rng.bytes(int(rng.integers(1, 20)))
    elif how == 4:
        width = int(rng.integers(1, 9))
        changed[head : head + width] = rng.bytes(width)
    elif how == 5:
        changed[place:] = other[place:]
    else:
        changed[16:] = rng.bytes(int(rng.integers(0, 60)))
    return bytes(changed)


def sealed(data: bytes, layout: Layout) -> bytes:
    """Return the bytes with the layout and the checksum that they need to be looked at."""
    head = data[:4] + bytes.fromhex(layout.hash)
    return head + zlib.crc32(data[16:], zlib.crc32(head)).to_bytes(4, "little") + data[16:]


def peak_bytes() -> int:
    """Return the most memory that this process ever had, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def run(count: int, seed: int = 0) -> Tally:
    """Try `count` payloads."""
    rng = np.random.default_rng(seed)
    tally, started, baseline = Tally(), time.perf_counter(), 0
    payloads: list[tuple[bytes, Layout]] = []
    for number in range(count):
        if number % ROUND == 0:
            payloads = pool(rng)
        if number == min(WARM_UP, count - 1):
            baseline = peak_bytes()
        _try_one(rng, payloads, tally)
    tally.growth_bytes = peak_bytes() - baseline
    tally.seconds = time.perf_counter() - started
    return tally


def _try_one(rng: np.random.Generator, payloads: list[tuple[bytes, Layout]], tally: Tally) -> None:
    data, layout = payloads[int(rng.integers(0, len(payloads)))]
    other = payloads[int(rng.integers(0, len(payloads)))][0]
    for _ in range(int(rng.integers(1, 4))):
        data = mutate(rng, data, other) or b"\0"
    if rng.random() < 0.9 and len(data) >= 16:
        data = sealed(data, layout)
    try:
        decode(data, layout)
    except WireError as error:
        cause = " ".join(str(error).split()[:2])
        tally.refused[cause] = tally.refused.get(cause, 0) + 1
        return
    assert accepts(data, layout)
    tally.accepted += 1


def main() -> None:
    """Try as many payloads as asked and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tally = run(arguments.count, arguments.seed)
    print(f"{tally.count} payloads in {tally.seconds:.0f} s")
    print(f"accepted, and written again bit for bit: {tally.accepted}")
    print(f"refused with WireError: {sum(tally.refused.values())}")
    print(f"growth of the peak memory: {tally.growth_bytes / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
