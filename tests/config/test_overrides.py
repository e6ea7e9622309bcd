"""`--set`: values are YAML, the later wins, a change of component drops what it does not know."""

import pytest

from fedsbc import config
from fedsbc.errors import ConfigError

TEXT = """\
name: sbc-mnist
data: {name: mnist-5k, partition: {kind: dirichlet, alpha: 0.5}}
model: {name: lenet5-caffe}
clients: {count: 100, local_steps: 10, batch_size: 20, optimizer: {name: sgd, lr: 0.05}}
rounds: 100
upstream: {name: sbc, density: 0.01, scope: model, error_feedback: true}
"""


@pytest.fixture
def load(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(TEXT)
    return lambda *overrides: config.load(path, overrides)


def test_values_are_yaml(load):
    loaded = load(
        "rounds=3", "final_sync=true", "engine.address=", "name='7'", "upstream.density=1e-3"
    )
    assert loaded.rounds == 3
    assert loaded.final_sync is True
    assert loaded.engine.address is None
    assert loaded.name == "7"
    assert loaded.upstream.density == 0.001


def test_the_later_wins(load):
    assert load("rounds=3", "rounds=4").rounds == 4


def test_a_value_may_hold_an_equals_sign(load):
    assert load("engine.address=ray://a?b=c").engine.address == "ray://a?b=c"


def test_a_whole_mapping_replaces_what_was_there(load):
    assert load("upstream={name: topk, density: 0.2}").upstream.scope == "tensor"


def test_sections_that_the_file_does_not_have(load):
    assert load("failures.min_replies=2", "failures.abort_after=1").failures.min_replies == 2


def test_another_scheme_keeps_the_options_that_it_knows(load):
    upstream = load("upstream.name=topk").upstream
    assert (upstream.name, upstream.density, upstream.scope) == ("topk", 0.01, "model")


def test_another_scheme_drops_the_options_that_it_does_not_take(load):
    upstream = load("upstream.name=none").upstream
    assert upstream == type(upstream)()


def test_an_option_that_contradicts_the_other_scheme_is_refused_if_it_was_set(load):
    with pytest.raises(ConfigError, match=r"--set: upstream: error_feedback needs"):
        load("upstream.name=none", "upstream.error_feedback=true")


def test_another_partition(load):
    assert load("data.partition.kind=iid").data.partition.model_dump() == {"kind": "iid"}


@pytest.mark.parametrize("order", [1, -1])
def test_what_an_override_says_is_never_dropped(load, order):
    overrides = ["upstream.name=none", "upstream.density=0.1"][::order]
    with pytest.raises(ConfigError, match=r"--set: upstream\.density: unknown key"):
        load(*overrides)


def test_a_mistake_in_the_file_is_not_dropped(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(TEXT.replace("scope: model", "scpe: model"))
    with pytest.raises(ConfigError, match=r"upstream\.scpe: unknown key"):
        config.load(path, ["upstream.name=none"])


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("rounds", "expected key.path=value"),
        ("=3", "expected key.path=value"),
        ("a..b=3", "expected key.path=value"),
        ("name.x=3", "name is not a mapping"),
        ("rounds=[1", "--set rounds=[1"),
        ("rounds=-1", "with --set: rounds: given -1"),
        ("round=3", "did you mean `rounds`?"),
        ("upstream.desnity=0.1", "did you mean `density`?"),
        ("model.x.y=1", "model.x: unknown key"),
    ],
)
def test_a_mistake_in_an_override(load, override, expected):
    with pytest.raises(ConfigError) as error:
        load(override)
    assert expected in str(error.value)
    assert "--set" in str(error.value)
    assert "\n" not in str(error.value)


def test_an_override_is_not_blamed_for_the_file(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(TEXT.replace("batch_size: 20", "batch_size: 0"))
    with pytest.raises(ConfigError, match=r"a\.yaml: clients\.batch_size: given 0"):
        config.load(path, ["rounds=3"])
