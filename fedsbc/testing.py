"""The conformance kit: what every compressor must hold to, for schemes of this package and yours.

    from fedsbc.testing import check_compressor

    def test_my_scheme():
        check_compressor(MyScheme(MyOptions(density=0.01)))

Every check of `CHECKS` is a function of a compressor that raises AssertionError. A scheme that
passes them all works in every engine, its payloads decode, and its residuals add up.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fedsbc import payload
from fedsbc.arrays import Vector
from fedsbc.compressors.base import Compressor, CorrectingCompressor, SparseOptions, State
from fedsbc.errors import UpdateError
from fedsbc.feedback import Compressed, compress_with_feedback
from fedsbc.layout import Layout
from fedsbc.selection import num_to_keep
from fedsbc.updates import SeededBlock, Update

LAYOUTS = (
    Layout.of([("matrix", (30, 40)), ("scalar", ()), ("empty", (0,)), ("bias", (33,))]),
    Layout.of([("one", (1,))]),
    Layout.of([("nothing", (0,))]),
    Layout.of([]),
)
"""The layouts that are tried: mixed, one entry, one empty tensor, no tensor."""

NUM_ROUNDS = 8
"""How many rounds the checks over time take."""


def vectors(size: int) -> dict[str, Vector]:
    """Return the inputs that are tried, by name; each float32 of shape (size,), finite."""
    rng = np.random.default_rng(size)
    normal = rng.standard_normal(size)
    few = np.zeros(size)
    few[: max(1, size // 500)] = -3
    inputs = {
        "normal": normal,
        "heavy": rng.standard_t(2, size),
        "positive": np.abs(normal),
        "negative": -np.abs(normal),
        "ties": rng.integers(-2, 3, size),
        "zeros": np.zeros(size),
        "negative zeros": -np.zeros(size),
        "ones": np.ones(size),
        "minus ones": -np.ones(size),
        "few": few,
        "sorted": np.sort(normal),
        "denormal": normal * 1e-41,
        "smallest": np.sign(normal) * 1.4e-45,
        "huge": np.sign(normal) * 3.4e38,
    }
    return {name: np.asarray(values, np.float32) for name, values in inputs.items()}


def cases() -> Iterator[tuple[str, Layout, Vector]]:
    """Yield (description, layout, vector) for every layout and input."""
    for layout in LAYOUTS:
        for name, vector in vectors(layout.size).items():
            yield f"{name} of {[t.shape for t in layout.tensors]}", layout, vector


def check_options(compressor: Compressor) -> None:
    """The options are of the scheme's class, say its name, and survive JSON."""
    options = compressor.options
    assert isinstance(options, type(compressor).Options)
    assert type(options).model_validate_json(options.model_dump_json()) == options
    assert type(options).model_fields["name"].default == options.name, "`name` has a default"


def check_blocks(compressor: Compressor) -> None:
    """An update has its layout, finite float32 values, and sorted positions without zeros."""
    for name, layout, vector in cases():
        update = _compress(compressor, layout, vector)[0]
        assert update.layout == layout, name
        dense = update.to_dense()
        assert dense.dtype == np.float32, name
        assert np.isfinite(dense).all(), name
        for part, block in zip(layout.split(vector), update.blocks, strict=True):
            positions = getattr(block, "positions", np.arange(0))
            assert positions.dtype == np.int64, name
            assert (np.diff(positions) > 0).all(), name
            assert ((positions >= 0) & (positions < block.size)).all(), name
            assert 0 <= block.num_kept <= block.size, name
            if not isinstance(block, SeededBlock):  # the other side draws zeros too
                assert part[positions].all(), f"{name}: sends zeros"


def check_count(compressor: Compressor) -> None:
    """A scheme with a density sends exactly k of equal entries, for any density."""
    assert isinstance(compressor.options, SparseOptions)
    for density in (1e-9, 0.07, compressor.options.density, 1.0):
        scheme = _variant(compressor, density=density)
        for layout in LAYOUTS:
            update = _compress(scheme, layout, np.ones(layout.size, np.float32))[0]
            sizes = [layout.size] if _is_flat(scheme) else [t.size for t in layout.tensors]
            assert update.num_kept == sum(num_to_keep(density, size) for size in sizes)


def check_wire(compressor: Compressor) -> None:
    """What is decoded equals what was encoded, bit for bit."""
    for name, layout, vector in cases():
        update = _compress(compressor, layout, vector)[0]
        with np.errstate(over="ignore"):  # huge values may overflow on the way, none may change
            data = payload.encode(update)
            decoded = payload.decode(data, layout)
            assert decoded == update, name
            assert payload.encode(decoded) == data, name


def check_purity(compressor: Compressor) -> None:
    """No argument is changed, the same call gives the same result, no global generator is used."""
    for name, layout, vector in cases():
        state = _frozen(compressor.init_state(layout))
        vector.flags.writeable = False
        before = vector.tobytes(), _state_bytes(state), str(np.random.get_state())
        first, second = (_compress(compressor, layout, vector, state) for _ in range(2))
        after = vector.tobytes(), _state_bytes(state), str(np.random.get_state())
        assert before == after, name
        assert first[0] == second[0], name
        assert _state_bytes(first[1]) == _state_bytes(second[1]), name


def check_conservation(compressor: Compressor) -> None:
    """With error feedback, sent + residual = sum of changes, over rounds; else no residual."""
    layout = LAYOUTS[0]
    expected, sent = np.zeros(layout.size), np.zeros(layout.size)
    for delta, result in _rounds(compressor, layout):
        expected += delta  # as the scheme corrected it
        sent += result.update.to_dense()
        if not compressor.options.error_feedback:
            assert result.residual is None
            continue
        assert result.residual is not None
        np.testing.assert_allclose(sent + result.residual, expected, rtol=0, atol=1e-4)


def check_refusal(compressor: Compressor) -> None:
    """NaN and infinity are refused with UpdateError, wherever they are, and nothing changes."""
    layout = LAYOUTS[0]
    for bad in (np.nan, np.inf, -np.inf):
        for entry in (0, layout.size // 2, layout.size - 1):
            vector = vectors(layout.size)["normal"]
            vector[entry] = bad
            state = compressor.init_state(layout)
            before = vector.tobytes(), _state_bytes(state)
            _refuses(compressor, layout, vector, state)
            assert before == (vector.tobytes(), _state_bytes(state))


def check_state(compressor: Compressor) -> None:
    """The state is named plain arrays, and a copy of it continues just as the state itself."""
    layout = LAYOUTS[0]
    straight = _rounds(compressor, layout)
    copied = _rounds(compressor, layout, carry=_through_bytes)
    for (_, one), (_, other) in zip(straight, copied, strict=True):
        assert one.update == other.update
        assert _state_bytes(one.state) == _state_bytes(other.state)


CHECKS: tuple[Callable[[Compressor], None], ...] = (
    check_options,
    check_blocks,
    check_wire,
    check_purity,
    check_conservation,
    check_refusal,
    check_state,
)
"""What holds for every scheme, in the order in which `check_compressor` makes the checks."""


def check_compressor(compressor: Compressor, *, exact_k: bool = True) -> None:
    """Make every check of the kit on a compressor.

    Args:
        compressor: the scheme with the options to check it with.
        exact_k: whether a scheme with a density sends exactly k entries, see `check_count`;
            of no matter for others.

    Raises:
        AssertionError: the scheme does not hold to the contract; says which check and input.
    """
    for check in CHECKS:
        check(compressor)
    if exact_k and isinstance(compressor.options, SparseOptions):
        check_count(compressor)


def _compress(
    compressor: Compressor, layout: Layout, vector: Vector, state: State | None = None
) -> tuple[Update, State]:
    state = compressor.init_state(layout) if state is None else state
    return compressor.compress(vector, layout, state, np.random.default_rng(0))


def _rounds(
    compressor: Compressor, layout: Layout, carry: Callable[[State], State] = lambda state: state
) -> Iterator[tuple[Vector, Compressed]]:
    """Yield (change, result) of some rounds of random changes, residual and state carried on.

    The change is what the scheme made of it, where it corrects changes.
    """
    rng = np.random.default_rng(3)
    residual, state = None, compressor.init_state(layout)
    for _ in range(NUM_ROUNDS):
        delta = rng.standard_normal(layout.size).astype(np.float32)
        result = compress_with_feedback(compressor, delta, residual, layout, state, rng)
        if isinstance(compressor, CorrectingCompressor):
            delta, _ = compressor.correct(delta, layout, state)
        yield delta, result
        residual, state = result.residual, carry(result.state)


def _refuses(compressor: Compressor, layout: Layout, vector: Vector, state: State) -> None:
    try:
        _compress(compressor, layout, vector, state)
    except UpdateError:
        return
    raise AssertionError("a vector that is not finite was not refused")


def _variant(compressor: Compressor, **changes: Any) -> Compressor:
    options = type(compressor.options).model_validate(
        {**compressor.options.model_dump(), **changes}
    )
    return type(compressor)(options)


def _is_flat(compressor: Compressor) -> bool:
    return isinstance(compressor.options, SparseOptions) and compressor.options.scope == "model"


def _frozen(state: State) -> State:
    for array in state.values():
        array.flags.writeable = False
    return state


def _state_bytes(state: State) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in state.items()}


def _through_bytes(state: State) -> State:
    return {
        name: np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)
        for name, array in state.items()
    }
