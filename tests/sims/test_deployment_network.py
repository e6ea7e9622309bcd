"""Real links of limited rate: the seconds of a transfer are those of the time model."""

from types import SimpleNamespace

import pytest

from tests.benchmarks.deployment_network import measure, why_not

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # a slow link, on purpose


def test_a_transfer_takes_the_seconds_of_the_time_model(tmp_path):
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    args = SimpleNamespace(profile="3g", rounds=1, idle_s=5.0, set=[])
    result = measure("dense", args, tmp_path)
    found = [each for way in ("up", "down") for node in result[way]["seconds"].values()
             for each in node]  # fmt: skip
    assert len(found) == 6
    for each in found:
        assert each["measured_s"] == pytest.approx(each["model_s"], rel=0.15), each
