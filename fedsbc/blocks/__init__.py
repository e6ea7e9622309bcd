"""The kinds of block: what a compressed change of one tensor may look like.

| block | what travels for n entries, k of them kept | scheme |
|---|---|---|
| DenseBlock | n float32 | none, FedAvg |
| HalfBlock | n float16 | float16 |
| SparseMeanBlock | k positions, one signed mean | SBC |
| SparseSignBlock | k positions, k signs, one mean | STC |
| SparseTwoMeanBlock | k positions, k signs, a mean for each sign | ablations |
| SparseFloatBlock | k positions, k float32 | Top-k, DGC, GaussianK |
| SeededBlock | one seed for the whole update, k float32 | Rand-k |
| SignBlock | n signs, one scale | signSGD |
| TwoMeanBlock | n signs, a mean for each sign | 1-bit SGD |
| QuantisedBlock | n whole levels, a scale for each bucket | QSGD, TernGrad |
"""

from fedsbc.blocks.base import Block, Flags, Positions
from fedsbc.blocks.dense import DenseBlock, HalfBlock
from fedsbc.blocks.quantised import MAX_LEVEL, QuantisedBlock
from fedsbc.blocks.sign import SignBlock, TwoMeanBlock
from fedsbc.blocks.sparse import (
    SeededBlock,
    SparseFloatBlock,
    SparseMeanBlock,
    SparseSignBlock,
    SparseTwoMeanBlock,
)

__all__ = [
    "MAX_LEVEL",
    "Block",
    "DenseBlock",
    "Flags",
    "HalfBlock",
    "Positions",
    "QuantisedBlock",
    "SeededBlock",
    "SignBlock",
    "SparseFloatBlock",
    "SparseMeanBlock",
    "SparseSignBlock",
    "SparseTwoMeanBlock",
    "TwoMeanBlock",
]
