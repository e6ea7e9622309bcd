"""Records go to JSON and back, and say what is missing."""

import json

import pytest

from fedsbc.errors import RunError
from fedsbc.records import RoundRecord

RECORD = RoundRecord(3, 0.5, None, 1.25, 100, 200, 0.0, 0.75, 10, 1)


def test_a_record_survives_json_and_keys_of_newer_versions() -> None:
    data = json.loads(json.dumps(RECORD.to_dict()))
    assert RoundRecord.from_dict(data) == RECORD
    assert RoundRecord.from_dict({**data, "later": 1}) == RECORD


def test_a_missing_field_is_named() -> None:
    data = RECORD.to_dict()
    del data["up_bits"]
    with pytest.raises(RunError, match=r"missing: \['up_bits'\]"):
        RoundRecord.from_dict(data)
