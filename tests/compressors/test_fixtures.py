"""Frozen payloads, of every scheme: what was written once is decoded for ever.

`python -m tests.compressors.test_fixtures` writes them anew; a difference is a change of the
format or of a scheme, and belongs into the changelog.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from fedsbc import payload
from fedsbc.compressors import make, options_for
from fedsbc.layout import Layout
from tests.compressors.test_contract import EXACTLY_K, OTHERS

FILE = Path(__file__).parents[1] / "golden" / "schemes.json"
LAYOUT = Layout.of([("weight", (12, 10)), ("empty", (0,)), ("bias", (7,)), ("scalar", ())])


def change():
    """Return a change with ties, zeros and both signs that needs no random numbers."""
    steps = np.arange(LAYOUT.size)
    return ((steps * 37 % 101 - 50) / 8 * (steps % 5 > 0)).astype(np.float32)


def encoded(given):
    compressor = make(options_for(given["name"]).model_validate(given))
    state = compressor.init_state(LAYOUT)
    update, _ = compressor.compress(change(), LAYOUT, state, np.random.default_rng(0))
    return payload.encode(update)


def frozen(given):
    data = encoded(given)
    dense = payload.decode(data, LAYOUT).to_dense()
    return {"options": given, "payload": data.hex(), "dense": dense.astype(float).tolist()}


def cases():
    return json.loads(FILE.read_text())


@pytest.mark.parametrize("case", cases(), ids=lambda case: str(case["options"]))
def test_old_payloads_decode(case):
    update = payload.decode(bytes.fromhex(case["payload"]), LAYOUT)
    assert update.to_dense().tolist() == case["dense"]


@pytest.mark.parametrize("case", cases(), ids=lambda case: str(case["options"]))
def test_the_same_change_gives_the_same_payload(case):
    assert encoded(case["options"]).hex() == case["payload"]


if __name__ == "__main__":
    written = [frozen(given) for given in EXACTLY_K + OTHERS]
    FILE.write_text("[\n" + ",\n".join(json.dumps(case) for case in written) + "\n]\n")
