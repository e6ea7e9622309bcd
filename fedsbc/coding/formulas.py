"""The papers' formulas for coded positions: Rice parameter, expected bits, and the bounds."""

import math

import numpy as np
from numpy.typing import NDArray

GOLDEN_RATIO = (math.sqrt(5) + 1) / 2
MAX_RICE_PARAMETER = 31
"""Tensors hold fewer than 2**32 entries, so that no gap needs more low bits."""


def rice_parameters(densities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return b* for each density, shape as given; see `rice_parameter`."""
    # Above 0.618 the formula is negative: b* = 0. np.clip would take as long as all the rest.
    dense = np.minimum(np.maximum(densities, 2.0**-40), 0.9)
    ratios = math.log(GOLDEN_RATIO - 1) / np.log1p(-dense)
    parameters = 1 + np.floor(np.log2(ratios)).astype(np.int64)
    return np.minimum(np.maximum(parameters, 0), MAX_RICE_PARAMETER)


def rice_parameter(density: float) -> int:
    """Return the number b* of low bits of a gap that are sent as they are.

    b* = 1 + floor(log2(ln(phi - 1) / ln(1 - p))), with phi the golden ratio, at least 0.

    Args:
        density: fraction p of entries that are kept, in (0, 1].

    Source: Sattler et al., Sparse Binary Compression (arXiv 1805.08768), Algorithm 3. The text's
        example (8.38 bits at 1 %) is the value of b = 7; the formula gives b* = 6, 8.108 bits.

    >>> rice_parameter(0.01), rice_parameter(0.001)
    (6, 9)
    """
    return int(rice_parameters(np.array([density], np.float64))[0])


def rice_bits_per_position(density: float) -> float:
    """Return the expected bits of one position of a uniformly random set of density p.

    b* + 1 / (1 - (1 - p)^(2^b*)).

    Source: Sattler et al. (arXiv 1805.08768), the average position bits beside Algorithm 3.

    >>> round(rice_bits_per_position(0.01), 3)
    8.108
    """
    parameter = rice_parameter(density)
    missed = -math.expm1(2**parameter * math.log1p(-density)) if density < 1 else 1.0
    return parameter + 1 / missed


def entropy_bits(probability: float) -> float:
    """Return the binary entropy H(p) in bits; 0 at 0 and 1.

    >>> entropy_bits(0.5)
    1.0
    """
    if probability in (0.0, 1.0):
        return 0.0
    p, q = probability, 1 - probability
    return -p * math.log2(p) - q * math.log2(q)


def entropy_bits_per_position(density: float) -> float:
    """Return H(p) / p, the bound of any coding of independent positions of density p.

    >>> round(entropy_bits_per_position(0.01), 3)
    8.079
    """
    return entropy_bits(density) / density


def subset_bits(size: int, num_kept: int) -> float:
    """Return log2 C(size, num_kept), the bound of any coding of a uniformly random set.

    >>> subset_bits(4, 2) == math.log2(6)
    True
    """
    logs = math.lgamma(size + 1) - math.lgamma(num_kept + 1) - math.lgamma(size - num_kept + 1)
    return logs / math.log(2)
