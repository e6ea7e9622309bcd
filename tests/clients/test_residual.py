"""The residual after a verdict, and after an absence."""

import numpy as np
import pytest

from clients.residual import after_absence, settled
from fedsbc.config.schema import ResidualConfig
from fedsbc.layout import Layout
from fedsbc.message import TrainRequest
from fedsbc.payload import encode
from fedsbc.state import ClientState
from fedsbc.updates import SparseMeanBlock, Update

LAYOUT = Layout.of([("a", (4,))])
RESIDUAL = np.array([1, -2, 0.5, 3], np.float32)
UPDATE = Update(LAYOUT, [SparseMeanBlock(4, np.array([1, 3]), np.float32(10))])


def state(round=7):
    pending = np.frombuffer(encode(UPDATE), np.uint8)
    return ClientState("run", round, 0, {"residual": RESIDUAL, "pending": pending})


def request(used_round, discarded_round):
    return TrainRequest("run", 1, 9, 0, 8, "0" * 16, "shared", -1, used_round, discarded_round)


@pytest.mark.parametrize(
    ("used", "discarded", "expected"),
    [
        (7, 0, [1, -2, 0.5, 3]),
        (0, 7, [1, -2, 0.5, 3]),
        (3, 7, [1, -2, 0.5, 3]),
        (7, 3, [1, -2, 0.5, 3]),
        (0, 0, [1, 8, 0.5, 13]),
        (6, 5, [1, 8, 0.5, 13]),
    ],
)
def test_a_verdict(used, discarded, expected):
    assert settled(request(used, discarded), state(), LAYOUT).tolist() == expected


def test_nothing_to_settle():
    assert settled(request(0, 0), None, LAYOUT) is None
    assert settled(request(0, 0), ClientState("run", 3), LAYOUT) is None, "no error feedback"
    settled_already = ClientState("run", 7, 0, {"residual": RESIDUAL})
    assert settled(request(0, 0), settled_already, LAYOUT) is RESIDUAL


@pytest.mark.parametrize(
    ("rule", "missed", "kept"),
    [
        ({"absent": "keep"}, 50, [1, -2, 0.5, 3]),
        ({"absent": "decay", "factor": 0.5}, 0, [1, -2, 0.5, 3]),
        ({"absent": "decay", "factor": 0.5}, 2, [0.25, -0.5, 0.125, 0.75]),
        ({"absent": "decay", "factor": 0.0}, 1, [0, 0, 0, 0]),
        ({"absent": "decay", "factor": 1.0}, 9, [1, -2, 0.5, 3]),
        ({"absent": "drop", "after": 3}, 2, [1, -2, 0.5, 3]),
        ({"absent": "drop", "after": 3}, 3, None),
    ],
)
def test_an_absence(rule, missed, kept):
    before = RESIDUAL.copy()
    left = after_absence(RESIDUAL, missed, ResidualConfig.model_validate(rule))
    assert RESIDUAL.tobytes() == before.tobytes()
    assert (None if left.kept is None else left.kept.tolist()) == kept
    lost = RESIDUAL - (0 if kept is None else np.array(kept))
    assert (np.zeros(4) if left.forgotten is None else left.forgotten).tolist() == lost.tolist()
    assert left.forgotten_mass == abs(lost).sum()


def test_no_residual_stays_none():
    rule = ResidualConfig(absent="drop", after=1)
    assert after_absence(None, 5, rule).kept is None
    assert after_absence(None, 5, rule).forgotten_mass == 0.0
