"""The table of names, and schemes of other packages."""

from pathlib import Path

import pytest

from fedsbc.compressors import TABLE, make, names, options_for
from fedsbc.errors import ConfigError
from fedsbc.selection import num_to_keep
from fedsbc.testing import check_compressor
from tests.experiments import initial, play, small
from tests.local_grid import LocalGrid

EXAMPLE = Path(__file__).parents[1] / "example_scheme"


def test_names_and_options():
    assert names() == sorted(TABLE)
    assert options_for("sbc")(density=0.01).name == "sbc"


def test_unknown_name_lists_the_known_and_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown compressor 'tpok': did you mean 'topk'.*sbc"):
        options_for("tpok")


@pytest.mark.parametrize("given", [{"density": 0}, {"density": 1.5}, {}, {"density": 0.1, "k": 3}])
def test_options_are_strict(given):
    with pytest.raises(ValueError):
        options_for("sbc").model_validate(given)


def test_a_scheme_of_another_package_works_by_name(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE)
    assert "first-k" in names()
    options = options_for("first-k").model_validate({"name": "first-k", "density": 0.1})
    check_compressor(make(options))


def test_a_scheme_of_another_package_works_in_a_config(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE)
    config = small("rounds=2", "upstream={name: first-k, density: 0.1}")
    rows = play(config, LocalGrid(config)).outcome.ledger.rows
    sent = [row.num_kept for row in rows if row.direction == "up" and row.num_kept]
    layout = initial(config)[0].layout
    assert set(sent) == {sum(num_to_keep(0.1, tensor.size) for tensor in layout.tensors)}


def test_a_package_that_fails_to_load_is_named(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE)
    with pytest.raises(ConfigError, match=r"'missing' .* fails to load"):
        options_for("missing")
