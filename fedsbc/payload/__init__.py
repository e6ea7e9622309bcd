"""The payload `fedsbc.v1`: the bytes of one update.

`decode(encode(update), update.layout) == update`, bit for bit. One update with one choice of
codings has one byte string, and anything else is a `WireError`. Numbers are little-endian; runs of
bits fill each byte from its highest bit and end with zero bits up to a byte. n is the number of
tensors; the layout tells both sides their sizes, so that these never travel.

| bytes | what | counts as |
|---|---|---|
| 0-1 | `FS` | header |
| 2 | version, 1 | header |
| 3 | kind of all blocks, 0 where they differ; plus 128 where all share their scalars | header |
| 4-11 | hash of the layout (64 bits) | header |
| 12-15 | CRC-32 of all other bytes | header |
| | **table**, column after column, at most 8 bytes a row | |
| 1 a row | kind, where the header says 0 | header |
| 1 a row with positions | coding of positions: id x 32 + Rice parameter | header |
| 1 a row with levels | coding of levels: id x 32 + Rice parameter | header |
| 1 a row with levels | log2 of the entries of a bucket, 0 for one bucket | header |
| 0-4 a row with a count | entries kept: as many bytes as the tensor's size takes | header |
| | **sections**, each for all blocks | |
| 0 or 8 | seed of random positions | positions |
| 4 each | scalars: means and scales; once where all blocks share them | values |
| 4 each | float32 values | values |
| 2 each | float16 values | values |
| 1 bit each | signs, 1 for negative | values |
| 1 bit per entry | bitmaps | positions |
| b bits each | low bits of Rice codes, by ascending b | positions, values |
| the rest | unary parts of Rice codes: positions of all blocks, then levels of all | the same |

| kind | block | count | positions | levels | signs | scalars | values |
|---|---|---|---|---|---|---|---|
| 1 | DenseBlock | | | | | | float32 of all |
| 2 | HalfBlock | | | | | | float16 of all |
| 3 | SparseMeanBlock | k | k | | | 1 | |
| 4 | SparseSignBlock | k | k | | k | 1 | |
| 5 | SparseTwoMeanBlock | k | k | | k | 2 | |
| 6 | SparseFloatBlock | k | k | | | | float32 of k |
| 7 | SeededBlock | k | seed | | | | float32 of k |
| 8 | SignBlock | | | | all | 1 | |
| 9 | TwoMeanBlock | | | | all | 2 | |
| 10 | QuantisedBlock | k | k | k, or all | k | 1 a bucket | |

A block that keeps nothing has no scalar (levels keep their scales). Codings of positions are in
`fedsbc.coding.positions`, those of levels in `fedsbc.coding.levels`, the draw of random positions
in `fedsbc.coding.sampling`. Ids and kinds are never used again for something else, so that old
bytes stay readable; a new coding or kind takes a free number.
"""

from fedsbc.payload.accounting import PayloadBits, measure
from fedsbc.payload.decoder import decode, decode_and_measure
from fedsbc.payload.encoder import Choices, encode
from fedsbc.payload.frame import max_payload_bytes

__all__ = [
    "Choices",
    "PayloadBits",
    "decode",
    "decode_and_measure",
    "encode",
    "max_payload_bytes",
    "measure",
]
