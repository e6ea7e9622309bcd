import pytest
from pydantic import ValidationError

from fedsbc.errors import ConfigError
from fedsbc.training import options_for_schedule


def factors(kind, at, **options):
    schedule = options_for_schedule(kind)(**options)
    return [schedule.factor(step) for step in at]


def test_constant_is_one():
    assert factors("constant", [0, 10**9]) == [1.0, 1.0]


def test_step_decays_at_each_milestone():
    steps = [0, 9, 10, 29, 30, 1000]
    found = factors("step", steps, milestones=[10, 30], decay=0.5)
    assert found == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_cosine_goes_from_one_to_the_final_factor_and_stays():
    found = factors("cosine", [0, 50, 100, 200], steps=100, final=0.2)
    assert found == pytest.approx([1.0, 0.6, 0.2, 0.2])


def test_milestones_must_increase():
    with pytest.raises(ValidationError, match="must increase"):
        options_for_schedule("step")(milestones=[30, 10])


def test_an_unknown_schedule_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"did you mean 'cosine'\? known: constant, cosine, step"):
        options_for_schedule("cosin")
