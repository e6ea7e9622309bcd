"""Compression of a change: the same bytes whether the residual takes its place or not."""

import numpy as np
import pytest

from clients.compression import compress
from fedsbc import compressors, payload
from fedsbc.testing import LAYOUTS, vectors

ROUNDS = 3


def options(name):
    kind = compressors.options_for(name)
    return kind(**({"density": 0.05} if "density" in kind.model_fields else {}))


def rounds(compressor, layout, vector, *, in_place):
    """Compress changes one after the other; return what is sent and what is kept each time."""
    residual, state, kept = None, compressor.init_state(layout), []
    for round in range(ROUNDS):
        change = np.roll(vector, round).astype(np.float32)
        result = compress(
            compressor,
            change,
            residual,
            layout,
            state,
            np.random.default_rng(round),
            in_place=in_place,
        )
        residual, state = result.residual, result.state
        assert residual is None or (residual is change) == in_place
        kept.append(payload.encode(result.update))
        kept += [] if residual is None else [residual.tobytes()]
        kept += [state[name].tobytes() for name in sorted(state)]
    return kept


@pytest.mark.parametrize("name", compressors.TABLE)
def test_a_residual_in_the_place_of_the_change_is_the_one_beside_it(name):
    compressor, layout = compressors.make(options(name)), LAYOUTS[0]
    for vector in list(vectors(layout.size).values())[:6]:
        beside = rounds(compressor, layout, vector, in_place=False)
        assert rounds(compressor, layout, vector, in_place=True) == beside


@pytest.mark.parametrize("name", compressors.TABLE)
def test_a_change_that_is_kept_is_not_touched(name):
    compressor, layout = compressors.make(options(name)), LAYOUTS[0]
    vector = next(iter(vectors(layout.size).values())).astype(np.float32)
    before = vector.copy()
    state, draws = compressor.init_state(layout), np.random.default_rng(0)
    compress(compressor, vector, None, layout, state, draws)
    assert (vector == before).all()
