"""The kit finds what it is there to find: each broken scheme fails the check named beside it."""

import numpy as np
import pytest

from fedsbc import testing
from fedsbc.compressors.topk import TopK, TopKOptions
from fedsbc.updates import SparseFloatBlock, Update


class Broken(TopK):
    def compress(self, vector, layout, state, generator):
        update, state = super().compress(vector, layout, state, generator)
        return Update(layout, [self.spoil(block) for block in update.blocks]), state

    def spoil(self, block):
        return block


class SendsZeros(Broken):
    def spoil(self, block):
        everywhere = np.arange(block.size)
        return SparseFloatBlock(block.size, everywhere, np.zeros(block.size, np.float32))


class Unsorted(Broken):
    def spoil(self, block):
        return SparseFloatBlock(block.size, block.positions[::-1], block.values)


class SendsTooMuch(Broken):
    def spoil(self, block):
        more = np.arange(min(block.size, block.num_kept + 1))
        return SparseFloatBlock(block.size, more, np.ones(len(more), np.float32))


class Forgetful(TopK):
    def compress(self, vector, layout, state, generator):
        vector[:] = 0
        return super().compress(vector, layout, state, generator)


class Random(Broken):
    def spoil(self, block):
        noise = np.random.default_rng().standard_normal(block.num_kept).astype(np.float32)
        return SparseFloatBlock(block.size, block.positions, noise)


class GlobalDraw(Broken):
    def spoil(self, block):
        np.random.random()
        return block


class TakesNaN(TopK):
    def compress(self, vector, layout, state, generator):
        return super().compress(np.nan_to_num(vector), layout, state, generator)


class ForgetsState(TopK):
    calls = 0

    def init_state(self, layout):
        return {"count": np.zeros(1)}

    def compress(self, vector, layout, state, generator):
        ForgetsState.calls += 1
        update, _ = super().compress(vector, layout, state, generator)
        return update, {"count": np.full(1, ForgetsState.calls)}


class DefaultlessOptions(TopKOptions):
    name: str


class Defaultless(TopK):
    Options = DefaultlessOptions


BROKEN = [
    (SendsZeros, testing.check_blocks),
    (Unsorted, testing.check_blocks),
    (SendsTooMuch, testing.check_count),
    (Forgetful, testing.check_purity),
    (Random, testing.check_purity),
    (GlobalDraw, testing.check_purity),
    (TakesNaN, testing.check_refusal),
    (ForgetsState, testing.check_state),
    (Defaultless, testing.check_options),
]


@pytest.mark.parametrize(("scheme", "check"), BROKEN, ids=lambda value: value.__name__)
def test_a_broken_scheme_is_found(scheme, check):
    compressor = scheme(scheme.Options(name="topk", density=0.05))
    with pytest.raises((AssertionError, ValueError)):
        check(compressor)


def test_a_lost_residual_is_found(monkeypatch):
    def forget(compressor, delta, residual, *rest):
        return compress(compressor, delta, None, *rest)

    compress = testing.compress_with_feedback
    monkeypatch.setattr(testing, "compress_with_feedback", forget)
    with pytest.raises(AssertionError):
        testing.check_conservation(TopK(TopKOptions(density=0.05)))


def test_a_lossy_wire_is_found(monkeypatch):
    sparse = TopK(TopKOptions(density=0.05))
    monkeypatch.setattr(testing.payload, "decode", lambda data, layout: _empty(layout))
    with pytest.raises(AssertionError):
        testing.check_wire(sparse)


def _empty(layout):
    nothing = np.arange(0)
    return Update(
        layout,
        [SparseFloatBlock(t.size, nothing, np.zeros(0, np.float32)) for t in layout.tensors],
    )
