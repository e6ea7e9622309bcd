"""Where the bits of a payload go."""

from dataclasses import dataclass

from fedsbc.coding.runs import run_sums
from fedsbc.layout import Layout
from fedsbc.payload.form import Counts
from fedsbc.payload.frame import HEADER_BYTES, Frame, unpack


@dataclass(frozen=True)
class PayloadBits:
    """The bits of one payload; the four add up to 8 times its bytes.

    Attributes:
        num_kept: entries that the update carries.
        position_bits: which entries they are, the seed of random ones included.
        value_bits: means, scales, signs, levels and floats.
        header_bits: the update's header and the table of its blocks.
        padding_bits: zero bits at the end of runs of bits.
    """

    num_kept: int
    position_bits: int
    value_bits: int
    header_bits: int
    padding_bits: int

    @property
    def payload_bits(self) -> int:
        """All bits: 8 times the bytes of the payload."""
        return self.position_bits + self.value_bits + self.header_bits + self.padding_bits


@dataclass(frozen=True)
class BlockBits:
    """The bits of each block of a payload, as columns of shape (n,), int64.

    Attributes:
        position_bits: of its positions; a seed belongs to the update.
        value_bits: of its values; scalars that all blocks share belong to the update.
        header_bits: of its row in the table.
    """

    position_bits: Counts
    value_bits: Counts
    header_bits: Counts


def measure(data: bytes | memoryview, layout: Layout) -> PayloadBits:
    """Return where the bits of a payload go.

    Raises:
        WireError: not a payload for that layout. Values are not looked at.
    """
    return bits_of(unpack(data, layout))


def bits_of(frame: Frame) -> PayloadBits:
    """Return where the bits of a payload go that was cut into its pieces.

    Raises:
        WireError: the unary code does not hold the announced numbers.
    """
    blocks = block_bits(frame)
    table = frame.table
    position_bits = int(blocks.position_bits.sum()) + 8 * len(frame.sections["seed"])
    shared_bits = 8 * len(frame.sections["scalars"]) if frame.shared else 0
    value_bits = int(blocks.value_bits.sum()) + shared_bits
    header_bits = 8 * HEADER_BYTES + int(blocks.header_bits.sum())
    padding_bits = 8 * frame.num_bytes - position_bits - value_bits - header_bits
    assert padding_bits >= 0
    return PayloadBits(int(table.kept.sum()), position_bits, value_bits, header_bits, padding_bits)


def block_bits(frame: Frame) -> BlockBits:
    """Return the bits of every block.

    Raises:
        WireError: the unary code does not hold the announced numbers.
    """
    table, num_blocks = frame.table, len(frame.table.kept)
    runs = table.runs
    coded = run_sums(frame.quotients, runs.lengths) + runs.lengths * (1 + runs.parameters)
    scalar_bits = 0 if frame.shared else 32 * table.num_scalars
    float_bits = 32 * table.num_floats + 16 * table.num_halves
    level_bits = coded[num_blocks:] if table.form.has_levels else 0
    return BlockBits(
        position_bits=coded[:num_blocks] + table.bitmap_bits,
        value_bits=level_bits + scalar_bits + float_bits + table.num_signs,
        header_bits=8 * table.form.header_bytes,
    )
