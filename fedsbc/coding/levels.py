"""The named codings of whole levels (their absolute values), and which is the shortest.

| coding | id | what travels for k levels that are not zero, out of n |
|---|---|---|
| beyond one | 0 | level - 1 of the k, Rice-coded; the positions travel beside it |
| one | 1 | nothing: each of the k is 1; the positions travel beside it |
| with zeros | 2 | the level of all n, Rice-coded; no positions |

As with positions, a coding is one byte: its id times 32 plus the Rice parameter (0 to 15).
Signs travel beside, one bit for each of the k. The parameter follows from the mean level as that
of positions from the mean gap, so that the unary part is at most `MAX_UNARY_BITS` per level:
sum(s >> b) <= n * mean(s) * -ln(1 - 1 / (1 + mean(s))) / ln(phi) <= 2.08 n for symbols s, and n.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsbc.coding.formulas import rice_parameters
from fedsbc.coding.rice import Runs, run_bits
from fedsbc.coding.runs import Symbols, run_sums

BEYOND_ONE, ONE, WITH_ZEROS = 0, 1, 2
MAX_UNARY_BITS = 4
MAX_PARAMETER = 15

_Counts = NDArray[np.int64]
_Codes = NDArray[np.uint8]


class Choice(NamedTuple):
    """The shortest coding of the levels of each tensor.

    Attributes:
        codes: coding bytes, shape (n,), uint8.
        bits: bits of the levels without signs, and without positions, shape (n,), int64.
    """

    codes: _Codes
    bits: _Counts


def is_known(codes: _Codes) -> NDArray[np.bool_]:
    """Tell which coding bytes have a meaning."""
    ids, parameter = codes >> 5, codes & 31
    return np.where(ids == ONE, parameter == 0, (ids <= WITH_ZEROS) & (parameter <= MAX_PARAMETER))


def num_coded(codes: _Codes, kept: _Counts, sizes: _Counts) -> _Counts:
    """Return how many levels of each tensor are coded, shape (n,)."""
    ids = codes >> 5
    return np.where(ids == WITH_ZEROS, sizes, np.where(ids == ONE, 0, kept))


def choose_beyond_one(magnitudes: Symbols, kept: _Counts) -> Choice:
    """Choose for levels whose positions travel beside them.

    Args:
        magnitudes: absolute levels that are not zero, of many tensors end to end, shape (k,).
        kept: how many of them each tensor has.
    """
    sums = run_sums(magnitudes, kept)
    parameters = rice_parameters(kept / np.maximum(sums, 1))
    parameters[kept == 0] = 0
    bits = run_bits(magnitudes - np.uint32(1), Runs(kept, parameters))
    ones = (sums == kept) & (kept > 0)
    codes = np.where(ones, ONE << 5, parameters)
    return Choice(codes.astype(np.uint8), np.where(ones, 0, bits))


def choose_with_zeros(magnitudes: Symbols, kept: _Counts, sizes: _Counts) -> Choice:
    """Choose for levels of all entries; arguments as above, and the entries of each tensor."""
    sums = run_sums(magnitudes, kept)
    parameters = rice_parameters(sizes / np.maximum(sums + sizes, 1))
    bits = run_bits(magnitudes, Runs(kept, parameters)) + (sizes - kept) * (1 + parameters)
    return Choice((parameters | WITH_ZEROS << 5).astype(np.uint8), bits)
