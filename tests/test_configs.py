"""Every file in configs/ is a config, named after its file."""

from pathlib import Path

import pytest

from fedsbc import config

CONFIGS = Path(__file__).parent.parent / "configs"
FILES = sorted(CONFIGS.rglob("*.y*ml"))


def test_there_are_configs():
    assert {path.stem for path in FILES} >= {"fedavg", "topk", "sbc"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(CONFIGS).as_posix())
def test_a_config_loads(path):
    assert config.load(path).name == path.stem


def test_the_demo_differs_in_the_scheme_alone():
    runs = [config.load(path).model_dump() for path in sorted(CONFIGS.glob("demo/*.yaml"))]
    assert len(runs) == 3
    for run in runs:
        del run["name"], run["upstream"], run["aggregation"]
    assert runs[0] == runs[1] == runs[2]


def test_both_ways_differ_in_the_downstream_alone():
    runs = [config.load(path).model_dump() for path in sorted(CONFIGS.glob("two-way/*.yaml"))]
    assert [run["downstream"]["name"] for run in runs] == ["stc", "none"]
    for run in runs:
        del run["name"], run["downstream"]
    assert runs[0] == runs[1]
