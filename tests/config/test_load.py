"""Configs: what loads, what comes back, and what each kind of mistake says."""

import json
import sys

import pytest

from fedsbc import config
from fedsbc.errors import ConfigError

GOOD = """\
name: sbc-mnist
data: {name: mnist-5k, partition: {kind: dirichlet, alpha: 0.5}}
model: {name: lenet5-caffe}
clients:
  count: 100
  local_steps: 10
  batch_size: 20
  optimizer: {name: sgd, lr: 0.05}
rounds: 100
participation: 0.1
upstream: {name: sbc, density: 0.01}
"""


@pytest.fixture
def load(tmp_path):
    """Write a text to a file and load it."""

    def write_and_load(text, *overrides):
        path = tmp_path / "a.yaml"
        path.write_text(text)
        return config.load(path, overrides)

    return write_and_load


@pytest.fixture
def refusal(load):
    """Return the message of the error that a text gives: always one line."""

    def load_and_fail(text, *overrides):
        with pytest.raises(ConfigError) as error:
            load(text, *overrides)
        message = str(error.value)
        assert "\n" not in message
        return message

    return load_and_fail


def test_the_tree_has_the_names_of_the_yaml(load):
    loaded = load(GOOD)
    assert loaded.clients.local_steps == 10
    assert loaded.clients.optimizer.lr == 0.05
    assert loaded.clients.schedule.kind == "constant"
    assert loaded.upstream.density == 0.01
    assert loaded.downstream.name == "none"
    assert loaded.data.partition.alpha == 0.5
    assert loaded.model.buffers == "average"
    assert loaded.network.profile == "none"
    assert loaded.cohort_size == 10


def test_components_are_read_by_their_own_options(load):
    from fedsbc import compressors, data, models
    from fedsbc.data import partition

    loaded = load(GOOD)
    assert type(loaded.upstream) is compressors.options_for("sbc")
    assert type(loaded.model) is models.options_for("lenet5-caffe")
    assert type(loaded.data.partition) is partition.options_for("dirichlet")
    assert isinstance(loaded.data, data.options_for("mnist-5k"))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 0.001), ("1", 1.0), ("1E-2", 0.01), (".5", 0.5), ("+0.25", 0.25), ("5.e-1", 0.5)],
)
def test_numbers(load, text, value):
    lr = load(GOOD, f"clients.optimizer.lr={text}").clients.optimizer.lr
    assert (type(lr), lr) == (float, value)


@pytest.mark.parametrize("name", ["no", "off", "2024-01-31", "007", "1e-3x", "1_0", "0x10"])
def test_yaml_1_1_surprises_are_text(load, name):
    assert load(GOOD, f"name={name}").name == name


def test_aliases_and_merge_keys(load):
    text = GOOD.replace("upstream: {", "upstream: &up {") + "downstream: {<<: *up, density: 0.1}\n"
    loaded = load(text)
    assert (loaded.downstream.name, loaded.downstream.density) == ("sbc", 0.1)


def test_json_round_trip(load):
    loaded = load(GOOD, "model={name: mlp}", "engine.actors=2")
    text = config.to_json(loaded)
    assert config.from_json(text) == loaded
    assert config.to_json(config.from_json(text)) == text
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_json_is_the_same_however_the_yaml_is_written(load):
    shuffled = "\n".join(["seed: 0", "evaluate: {every: 5}", *GOOD.splitlines()[6::-1][::-1]])
    shuffled += "\n" + "\n".join(reversed(GOOD.splitlines()[-3:]))
    shuffled = shuffled.replace(
        "batch_size: 20", "batch_size: 20\n  optimizer: {lr: 5e-2, name: sgd}"
    )
    assert config.to_json(load(shuffled)) == config.to_json(load(GOOD))


@pytest.mark.parametrize("name", ["no", "1e-3", "010", "true", "1.5", "null"])
def test_yaml_round_trip(load, name):
    loaded = load(GOOD, f"name='{name}'", "clients.optimizer.lr=1e-7")
    assert loaded.name == name
    assert load(config.to_yaml(loaded)) == loaded


def test_yaml_is_resolved_in_the_order_of_the_schema(load):
    lines = config.to_yaml(load(GOOD)).splitlines()
    assert lines[0] == "name: sbc-mnist"
    assert "transport: shared" in lines


def replaced(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


MISTAKES = {
    "empty": ("", ["given null", "expected a mapping"]),
    "a list": ("- 1", ["given [1]", "expected a mapping"]),
    "not yaml": ("a: [1", ["a.yaml:1", "expected ',' or ']'"]),
    "tab": ("name: a\n\tb: 1", ["a.yaml:2"]),
    "two documents": (GOOD + "---\nname: b\n", ["a.yaml:", "document"]),
    "control character": ("name: \x07", ["a.yaml", "not YAML"]),
    "python object": ("name: !!python/object:os.system {}", ["a.yaml:1", "python/object"]),
    "date tag": ("name: !!timestamp 2024-01-31", ["timestamp"]),
    "key is a number": (GOOD + "1: 2\n", ["a.yaml:12", "'1' is not text"]),
    "key is a list": (GOOD + "? [1]\n: 2\n", ["a.yaml:12", "not text"]),
    "deep": ("a: " + "[" * 1000, ["nested too deeply"]),
    "endless": (GOOD.replace("name: sbc-mnist", "name: &a [*a]"), ["Circular"]),
    "long number": (GOOD + f"seed: {'9' * 5000}\n", ["a.yaml"]),
    "duplicate key": (GOOD + "rounds: 3\n", ["a.yaml:12", "duplicate key `rounds`"]),
    "duplicate inner key": (
        replaced("density: 0.01", "density: 0.01, density: 0.1"),
        ["a.yaml:11", "duplicate key `density`"],
    ),
    "unknown key": (
        replaced("density: 0.01", "desnity: 0.01"),
        ["upstream.desnity", "given 0.01", "did you mean `density`?"],
    ),
    "unknown key at the top": (GOOD + "seeds: 1\n", ["seeds", "did you mean `seed`?"]),
    "key in the wrong place": (GOOD + "lr: 1\n", ["did you mean `clients.optimizer.lr`?"]),
    "key like no other": (
        GOOD + "colour: red\n",
        ["colour", 'given "red"', "expected one of name,"],
    ),
    "missing key": (replaced("rounds: 100\n", ""), ["rounds", "missing key", "a whole number > 0"]),
    "missing inner key": (replaced("  count: 100\n", ""), ["clients.count", "missing key"]),
    "missing component": (replaced("model: {name: lenet5-caffe}\n", ""), ["model", "missing key"]),
    "missing option": (replaced(", density: 0.01", ""), ["upstream.density", "missing key"]),
    "missing chooser": (replaced("name: sbc, ", ""), ["upstream.name", "missing key"]),
    "component is text": (
        replaced("{name: sbc, density: 0.01}", "sbc"),
        ["upstream", 'given "sbc"', "a mapping with the key `name`"],
    ),
    "chooser is null": (replaced("name: sbc,", "name: ~,"), ["upstream.name", "given null"]),
    "section is a number": (GOOD + "engine: 4\n", ["engine", "given 4", "a mapping with the keys"]),
    "clients is a list": (
        GOOD.split("clients:")[0] + "clients: [1]\nrounds: 1\nupstream: {name: none}\n",
        ["clients", "given [1]", "a mapping"],
    ),
    "text for a number": (
        replaced("0.1\n", "'0.1'\n"),
        ["participation", 'given "0.1"', "a number"],
    ),
    "fraction for a count": (
        replaced("rounds: 100", "rounds: 1.5"),
        ["rounds", "given 1.5", "whole"],
    ),
    "bool for a count": (
        replaced("rounds: 100", "rounds: true"),
        ["rounds", "given true", "whole"],
    ),
    "bool for a number": (replaced("lr: 0.05", "lr: true"), ["clients.optimizer.lr", "given true"]),
    "number for text": (replaced("name: sbc-mnist", "name: 7"), ["name", "given 7", "text"]),
    "octal": (replaced("rounds: 100", "rounds: 010"), ["rounds", 'given "010"', "a whole number"]),
    "underscores": (replaced("rounds: 100", "rounds: 1_000"), ["rounds", 'given "1_000"']),
    "base 60": (replaced("rounds: 100", "rounds: 1:30"), ["rounds", 'given "1:30"']),
    "yes": (GOOD + "final_sync: yes\n", ["final_sync", 'given "yes"', "true or false"]),
    "null": (replaced("rounds: 100", "rounds:"), ["rounds", "given null"]),
    "density 0": (replaced("density: 0.01", "density: 0"), ["density", "given 0", "> 0 and <= 1"]),
    "density 1.5": (replaced("density: 0.01", "density: 1.5"), ["density", "given 1.5", "<= 1"]),
    "density nan": (replaced("density: 0.01", "density: .nan"), ["density", "given NaN", "<= 1"]),
    "density nan as text": (replaced("density: 0.01", "density: nan"), ["density", 'given "nan"']),
    "lr inf": (replaced("lr: 0.05", "lr: .inf"), ["clients.optimizer.lr", "given Infinity"]),
    "lr overflows": (replaced("lr: 0.05", "lr: 1e999"), ["clients.optimizer.lr", "given Infinity"]),
    "participation 0": (replaced("0.1\n", "0\n"), ["participation", "given 0", "> 0 and <= 1"]),
    "participation 2": (replaced("0.1\n", "2\n"), ["participation", "given 2", "> 0 and <= 1"]),
    "participants 200": (
        replaced("participation: 0.1\n", "participants: 200\n"),
        ["`participants` is 200", "`clients.count` is 100"],
    ),
    "a fraction and a number": (GOOD + "participants: 2\n", ["expected one of them"]),
    "no steps": (
        replaced("  local_steps: 10\n", ""),
        ["`local_steps` or `local_epochs`", "neither"],
    ),
    "steps and epochs": (
        replaced("  local_steps: 10\n", "  local_steps: 10\n  local_epochs: 1\n"),
        ["`local_steps` or `local_epochs`", "both"],
    ),
    "rounds -1": (replaced("rounds: 100", "rounds: -1"), ["rounds", "given -1", "> 0"]),
    "no clients": (replaced("count: 100", "count: 0"), ["clients.count", "given 0", "> 0"]),
    "evaluate never": (GOOD + "evaluate: {every: 0}\n", ["evaluate.every", "given 0", "> 0"]),
    "no actors": (GOOD + "engine: {actors: 0}\n", ["engine.actors", "auto or a whole number > 0"]),
    "seed below 0": (GOOD + "seed: -1\n", ["seed", "given -1", ">= 0"]),
    "unlisted word": (
        GOOD + "aggregation: men\n",
        ["aggregation", 'given "men"', "one of mean, examples, vote", "did you mean `mean`?"],
    ),
    "unknown compressor": (replaced("name: sbc,", "name: sbd,"), ["upstream.name", "sbd", "topk"]),
    "unknown model": (replaced("lenet5-caffe", "lenet"), ["model.name", "lenet", "mlp"]),
    "unknown data set": (replaced("mnist-5k", "mnist5k"), ["data.name", "mnist5k", "mnist-5k"]),
    "unknown partition": (
        replaced("kind: dirichlet", "kind: diri"),
        ["data.partition.kind", "iid"],
    ),
    "unknown optimiser": (replaced("name: sgd", "name: sgdd"), ["clients.optimizer.name", "sgd"]),
    "name is a path": (replaced("name: sbc-mnist", "name: ../x"), ["name", 'given "../x"']),
    "decay without factor": (GOOD + "residual: {absent: decay}\n", ["residual", "needs `factor`"]),
    "factor without decay": (GOOD + "residual: {factor: 0.5}\n", ["residual", "absent: decay"]),
    "more replies than clients": (
        GOOD + "failures: {min_replies: 11}\n",
        ["`failures.min_replies` is 11", "10 clients"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gives_one_line_that_says_where_and_what(refusal, mistake):
    text, expected = MISTAKES[mistake]
    message = refusal(text)
    assert "a.yaml" in message
    assert [part for part in expected if part not in message] == [], message
    assert len(message) < 600


def test_a_missing_file(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: there is no such file"):
        config.load(tmp_path / "nowhere.yaml")


def test_a_folder(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(tmp_path)


def test_a_binary_file(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a text file in UTF-8"):
        config.load(path)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"name": "a"}', '{"name": "a"', "[" * 100_000])
def test_bad_json(text):
    with pytest.raises(ConfigError, match="config given as JSON"):
        config.from_json(text)


def test_loading_brings_no_flower_and_no_ray(tmp_path):
    import subprocess

    path = tmp_path / "a.yaml"
    path.write_text(GOOD)
    script = (
        "import sys; from fedsbc import config; config.load(sys.argv[1]); "
        "print(sorted({'flwr', 'ray', 'datasets'} & sys.modules.keys()))"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
