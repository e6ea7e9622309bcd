"""What payloads will cost before anything is trained: expected bits, from the formulas of `bits`.

Positions count as uniformly random and values as normally distributed. Real ones are close to it
for one client's update. The sum of many clients' updates is not: clients agree in part on what is
large, so that fewer entries are not zero than independent choices would give. A finished run of
the scheme says by how much (`sims.planning`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fedsbc import bits
from fedsbc.compressors import make
from fedsbc.compressors.base import CompressorOptions, SparseOptions
from fedsbc.layout import Layout
from fedsbc.payload import encode, measure
from fedsbc.payload.frame import HEADER_BYTES
from fedsbc.selection import num_to_keep

SPARSE: dict[str, Callable[[int, int], float]] = {
    "gaussiank": bits.gaussiank_bits,
    "gradient-dropping": bits.topk_bits,
    "sbc": bits.sbc_bits,
    "stc": bits.stc_bits,
    "threshold-search": bits.topk_bits,
    "topk": bits.topk_bits,
    "trimmed-topk": bits.topk_bits,
}
"""Schemes whose bits follow from k: entries and k of a tensor -> position and value bits."""


@dataclass(frozen=True)
class Expected:
    """The expected payload of one update.

    Attributes:
        kept: entries that it carries, for each tensor.
        body_bits: positions and values.
        header_bits: the header and the table of the tensors.
    """

    kept: tuple[float, ...]
    body_bits: float
    header_bits: float

    @property
    def payload_bits(self) -> float:
        """All bits of the payload."""
        return self.body_bits + self.header_bits

    def times(self, share: float) -> "Expected":
        """Return the payload with so much of the bits of its body."""
        return replace(self, body_bits=self.body_bits * share)


def expected_update(options: CompressorOptions, layout: Layout) -> Expected:
    """Return the expected payload of a scheme.

    Schemes of `SPARSE` go by their formula, `none` by its own; of any other one a change of
    normally distributed values is compressed, encoded and measured.
    """
    if isinstance(options, SparseOptions) and options.name in SPARSE:
        formula = SPARSE[options.name]
        kept = _kept(options, layout)
        body = sum(formula(t.size, k) for t, k in zip(layout.tensors, kept, strict=True))
        return Expected(tuple(kept), body, _header_bits(layout, sparse=True))
    if options.name == "none" and getattr(options, "dtype", "float32") == "float32":
        return expected_dense(layout)
    vector = np.random.default_rng(0).standard_normal(layout.size).astype(np.float32)
    compressor, draws = make(options), np.random.default_rng(0)
    update, _ = compressor.compress(vector, layout, compressor.init_state(layout), draws)
    found = measure(encode(update), layout)
    body = found.position_bits + found.value_bits + found.padding_bits
    return Expected(tuple(block.num_kept for block in update.blocks), body, found.header_bits)


def expected_dense(layout: Layout) -> Expected:
    """Return the payload of a full model, or of any dense float32 update: exact."""
    sizes = [tensor.size for tensor in layout.tensors]
    body = sum(bits.none_bits(size) for size in sizes)
    return Expected(tuple(sizes), body, _header_bits(layout, sparse=False))


def expected_sum(update: Expected, layout: Layout, num_clients: int) -> Expected:
    """Return the lossless payload of the sum of so many updates with independent positions.

    A tensor of which a share p is sent by each of m clients has 1 - (1 - p)^m non-zeros; it goes
    as positions and float32 values, or dense where that is shorter (`fedsbc.lossless`).
    """
    kept, body = [], 0.0
    for tensor, sent in zip(layout.tensors, update.kept, strict=True):
        share = 1 - (1 - sent / max(1, tensor.size)) ** num_clients
        sparse = bits.topk_bits(tensor.size, round(share * tensor.size))
        dense = bits.none_bits(tensor.size)
        kept.append(share * tensor.size if sparse < dense else float(tensor.size))
        body += min(sparse, dense)
    is_dense = all(k == t.size for k, t in zip(kept, layout.tensors, strict=True))
    return Expected(tuple(kept), body, _header_bits(layout, sparse=not is_dense))


def _kept(options: SparseOptions, layout: Layout) -> list[int]:
    """Return how many entries each tensor sends; whole-model selections in equal shares."""
    if options.scope == "tensor":
        return [num_to_keep(options.density, tensor.size) for tensor in layout.tensors]
    share = num_to_keep(options.density, layout.size) / max(1, layout.size)
    return [round(share * tensor.size) for tensor in layout.tensors]


def _header_bits(layout: Layout, *, sparse: bool) -> float:
    """Return the bits of the header, and of a coding byte and a count for each sparse tensor."""
    rows = [1 + (tensor.size.bit_length() + 7) // 8 for tensor in layout.tensors]
    return 8.0 * (HEADER_BYTES + (sum(rows) if sparse else 0))
