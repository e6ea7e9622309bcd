"""The papers' formulas for bits, to be read beside what the ledger measures.

Every formula gives position and value bits of one tensor of `size` entries of which `num_kept`
are sent, without headers: `PayloadBits.position_bits + PayloadBits.value_bits`. Those of random
sets are expected values under uniformly random positions. Rules for a whole update: add up the
tensors.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fedsbc.coding.formulas import (
    entropy_bits,
    entropy_bits_per_position,
    rice_bits_per_position,
    rice_parameter,
    rice_parameters,
    subset_bits,
)

__all__ = [
    "entropy_bits",
    "entropy_bits_per_position",
    "rice_bits_per_position",
    "rice_parameter",
    "rice_parameters",
    "subset_bits",
]

FLOAT_BITS = 32
SEED_BITS = 64


def position_bits(size: int, num_kept: int) -> float:
    """Return the expected bits of the positions as this project codes them.

    Rice-coded (Sattler et al., Algorithm 3, p = num_kept / size), or a bitmap of one bit for
    every entry where that is shorter; nothing if no entry or every entry is kept.
    """
    if num_kept in (0, size):
        return 0.0
    return min(num_kept * rice_bits_per_position(num_kept / size), float(size))


def none_bits(size: int) -> float:
    """Return the bits of a dense float32 tensor, 32 d: no compression, and FedAvg each round.

    Source: Sattler et al. (arXiv 1805.08768), Table 1, 'Baseline' and 'Federated Averaging'.
    """
    return float(FLOAT_BITS * size)


def fp16_bits(size: int) -> float:
    """Return the bits of a dense float16 tensor, 16 d."""
    return 16.0 * size


def sbc_bits(size: int, num_kept: int) -> float:
    """Return the bits of SBC: the positions and one signed mean.

    Source: Sattler et al. (arXiv 1805.08768), Algorithms 2 and 3; Table 1: 0 value bits.
    """
    return position_bits(size, num_kept) + FLOAT_BITS * (num_kept > 0)


def stc_bits(size: int, num_kept: int) -> float:
    """Return the bits of STC: the positions, a sign each, and one mean.

    Source: Sattler et al., Robust and Communication-Efficient FL from Non-IID Data (arXiv
        1903.02891), section on sparse ternary compression: H_STC = H(p) + p per entry, here
        with the Rice code in place of H(p). The authors' program counts one bit more for each
        position.
    """
    return sbc_bits(size, num_kept) + num_kept


def topk_bits(size: int, num_kept: int) -> float:
    """Return the bits of Top-k: the positions and a float32 each.

    Source: Sattler et al. (arXiv 1903.02891): H_sparse = H(p) + 32 p per entry, here with the
        Rice code in place of H(p).
    """
    return position_bits(size, num_kept) + FLOAT_BITS * num_kept


def gaussiank_bits(size: int, num_kept: int) -> float:
    """Return the bits of GaussianK: as Top-k, with the number that its threshold let through.

    Source: Shi et al., Understanding Top-k Sparsification (arXiv 1911.08772): exact values of
        all entries above the threshold.
    """
    return topk_bits(size, num_kept)


def dgc_bits(size: int, num_kept: int) -> float:
    """Return the bits of Deep Gradient Compression for a tensor: as Top-k; dense if all is kept.

    Source: Lin et al., Deep Gradient Compression (ICLR 2018); the authors' program sparsifies
        tensors of two and more dimensions and sends the others dense.
    """
    return topk_bits(size, num_kept)


def dgc_table_bits(num_kept: int) -> float:
    """Return the bits that the SBC paper counts for DGC: 16 for a position and 32 for a value.

    Source: Sattler et al. (arXiv 1805.08768), Table 1.
    """
    return (16.0 + FLOAT_BITS) * num_kept


def randomk_bits(num_kept: int) -> float:
    """Return the bits of Rand-k: a float32 for each entry. The seed, `SEED_BITS`, is the update's.

    Source: Stich et al., Sparsified SGD with Memory (NeurIPS 2018), rand_k; that the positions
        travel as a seed is ours.
    """
    return float(FLOAT_BITS * num_kept)


def signsgd_bits(size: int) -> float:
    """Return the bits of signSGD: a sign for every entry and one scale.

    Source: Bernstein et al., signSGD (ICML 2018): d bits; the scale is ours, and travels once
        where all tensors have the same.
    """
    return float(size + FLOAT_BITS)


def onebit_bits(size: int) -> float:
    """Return the bits of 1-bit SGD: a sign for every entry and two means.

    Source: Seide et al., 1-Bit Stochastic Gradient Descent (Interspeech 2014), section 3;
        deviation: the means are per tensor, not per column.
    """
    return float(size + 2 * FLOAT_BITS)


def terngrad_bits(size: int, num_kept: int) -> float:
    """Return the bits of TernGrad: which entries are not zero, their signs, and one scale.

    Source: Wen et al., TernGrad (NeurIPS 2017), section 3.1: d log2(3) bits; here the entries
        that are not zero are coded as positions.
    """
    return position_bits(size, num_kept) + num_kept + FLOAT_BITS


def terngrad_table_bits(size: int) -> float:
    """Return the bits that TernGrad's paper counts: log2(3) for every entry and one scale.

    Source: Wen et al., TernGrad (NeurIPS 2017), section 3.1.
    """
    return math.log2(3) * size + FLOAT_BITS


def qsgd_bits(size: int, level_probabilities: NDArray[np.float64], num_buckets: int = 1) -> float:
    """Return the expected bits of QSGD with levels of the given distribution.

    The shorter of two codings: the Rice-coded level of every entry, or the positions of the
    levels that are not zero with the Rice-coded rest of each level above one.

    Args:
        size: entries of the tensor.
        level_probabilities: probability of the absolute levels 0, 1, ..., shape (levels,).
        num_buckets: scales that are sent.

    Source: Alistarh et al., QSGD (NeurIPS 2017), section 3; deviation: Rice in place of Elias
        codes, whose bound is `qsgd_bound_bits`.
    """
    kept = float(1 - level_probabilities[0])
    if kept == 0:
        return float(FLOAT_BITS * num_buckets)
    beyond = level_probabilities[1:] / kept
    beside = kept * size * _rice_symbol_bits(beyond) if beyond[0] < 1 else 0.0
    beside += position_bits(size, round(kept * size))
    alone = size * _rice_symbol_bits(level_probabilities)
    return min(beside, alone) + kept * size + FLOAT_BITS * num_buckets


def _rice_symbol_bits(probabilities: NDArray[np.float64]) -> float:
    """Return the expected Rice bits of a symbol 0, 1, ... of that distribution."""
    symbols = np.arange(len(probabilities))
    parameter = rice_parameter(1 / (1 + float(symbols @ probabilities)))
    return 1 + parameter + float((symbols >> parameter) @ probabilities)


def qsgd_bound_bits(size: int) -> float:
    """Return QSGD's bound at sqrt(d) levels: 2.8 d + 32 bits.

    Source: Alistarh et al., QSGD (NeurIPS 2017), Corollary 3.3.
    """
    return 2.8 * size + FLOAT_BITS


def signsgd_download_bits(size: int, missed_rounds: int) -> float:
    """Return the bound d log2(2 s + 1) of the sum of the last s majority votes.

    Source: Sattler et al. (arXiv 1903.02891), section on partial participation and caching.
    """
    return size * math.log2(2 * missed_rounds + 1)


def stc_download_bits(size: int, missed_rounds: int, message_bits: float) -> float:
    """Return the bound min(s |message|, 32 d) of what a client that missed s rounds downloads.

    Source: Sattler et al. (arXiv 1903.02891), section on partial participation and caching.
    """
    return min(missed_rounds * message_bits, none_bits(size))


def compression_rate(density: float, local_steps: int = 1) -> float:
    """Return how many times fewer bits SBC sends than dense SGD at every step, without means.

    32 n / (p b_pos): the papers' rates at (p, n) = (0.001, 1), (0.01, 10), (0.01, 100) are those
    of SBC(1), SBC(2), SBC(3).

    Source: Sattler et al. (arXiv 1805.08768), section 2 and Table 1.

    >>> round(compression_rate(0.01, 100))
    39468
    """
    return FLOAT_BITS * local_steps / (density * rice_bits_per_position(density))
