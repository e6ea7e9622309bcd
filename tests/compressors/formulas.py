"""Which formula of `fedsbc.bits` belongs to which scheme, and a measured payload to compare."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fedsbc import bits, payload
from fedsbc.arrays import Vector
from fedsbc.compressors import make, options_for
from fedsbc.compressors.gaussiank import GaussianK, GaussianKOptions
from fedsbc.layout import Layout
from fedsbc.payload import PayloadBits
from fedsbc.selection import num_to_keep
from fedsbc.updates import Update

SIZE = 400_000
DENSITIES = (0.001, 0.0025, 0.01, 0.04, 0.1)

Options = Mapping[str, Any]

SPARSE: dict[str, tuple[Callable[[int, int], float], Options]] = {
    "sbc": (bits.sbc_bits, {}),
    "stc": (bits.stc_bits, {}),
    "topk": (bits.topk_bits, {}),
    "gaussiank": (bits.gaussiank_bits, {}),
    "dgc": (bits.dgc_bits, {"dense_vectors": False}),
    "trimmed-topk": (bits.topk_bits, {}),
    "threshold-search": (bits.topk_bits, {}),
    "gradient-dropping": (bits.topk_bits, {"sample": 0.05}),
    "randomk": (lambda size, kept: bits.randomk_bits(kept), {}),
}
"""Formula of (size, number sent), and options, of the schemes with a density."""

WHOLE: dict[str, Callable[[int], float]] = {
    "none": bits.none_bits,
    "signsgd": bits.signsgd_bits,
    "ef-signsgd": bits.signsgd_bits,
    "onebit": bits.onebit_bits,
}
"""Formula of the size of the schemes that send every entry alike."""

QSGD_LEVELS = (1, 4, 16, 64, 255)


def measured(given: Options) -> tuple[Update, PayloadBits]:
    """Compress and encode one normal tensor of SIZE entries."""
    compressor = make(options_for(given["name"]).model_validate(dict(given)))
    layout = Layout.single(SIZE)
    vector = np.random.default_rng(0).standard_normal(SIZE, dtype=np.float32)
    rng = np.random.default_rng(1)
    update, _ = compressor.compress(vector, layout, compressor.init_state(layout), rng)
    return update, payload.measure(payload.encode(update), layout)


def qsgd_formula_bits(update: Update) -> float:
    """Return QSGD's formula at the levels that an update really has."""
    (block,) = update.blocks
    shares = np.bincount(np.abs(block.levels)) / SIZE
    return bits.qsgd_bits(SIZE, shares, len(block.scales))


def gaussiank_ratios(vector: Vector, density: float) -> list[float]:
    """Return what GaussianK sends, in multiples of k, after 0 to 3 corrections."""
    layout, k = Layout.single(len(vector)), num_to_keep(density, len(vector))
    ratios = []
    for corrections in range(4):
        options = GaussianKOptions(density=density, corrections=corrections)
        update, _ = GaussianK(options).compress(vector, layout, {}, np.random.default_rng(0))
        ratios.append(update.num_kept / k)
    return ratios
