import pytest

from fedsbc.payload import decode, encode
from tests.payload.examples import KINDS
from tests.payload.frozen import load, update_of

CASES = {case["name"]: case for case in load()}


@pytest.mark.parametrize("name", CASES)
def test_frozen_payload_is_decoded(name: str) -> None:
    update = update_of(CASES[name])
    data = bytes.fromhex(CASES[name]["hex"])
    assert decode(data, update.layout) == update


@pytest.mark.parametrize("name", CASES)
def test_frozen_payload_is_what_is_written_today(name: str) -> None:
    assert encode(update_of(CASES[name])).hex() == CASES[name]["hex"]


def test_every_kind_and_coding_is_frozen() -> None:
    kinds = {block["kind"] for case in CASES.values() for block in case["blocks"]}
    assert kinds == {kind.__name__ for kind in KINDS}
    assert {"rice", "bitmap", "all", "beyond one", "one", "with zeros"} <= {
        coding for case in CASES.values() for coding in case["codings"]
    }
