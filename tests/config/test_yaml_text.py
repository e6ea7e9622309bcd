"""What is written comes back, from our reader and from any other YAML reader."""

import json

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given

from fedsbc.config.yaml_text import dump, parse
from fedsbc.errors import ConfigError

words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8) | st.sampled_from(
    ["no", "1e-3", "010", "1_0", "1:30", "2024-01-31", "0x1f", "=", "<<", "~", ".inf", "y", "0o7"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words
trees = st.dictionaries(words, scalars | st.lists(scalars) | st.dictionaries(words, scalars))


@given(trees)
def test_what_is_written_is_read_as_it_was(tree):
    assert parse(dump(tree), "here") == tree


@given(trees)
def test_a_reader_of_yaml_1_1_reads_the_same(tree):
    assert yaml.safe_load(dump(tree)) == tree


@given(st.text(max_size=40) | st.text("[]{}:,-&*!<>|'\"#%@`? \n\t01ae.~", max_size=40))
def test_any_text_gives_plain_data_or_one_line(text):
    assert _is_plain_or_refused(text)


def _is_plain_or_refused(text):
    try:
        json.dumps(parse(text, "here"))
    except ConfigError as error:
        return str(error).startswith("here") and len(str(error).splitlines()) == 1
    return True


@pytest.mark.parametrize("text", ["!!binary aGk=", "!!set {a}", "!!omap [a: 1]", "!!pairs [a: 1]"])
def test_tags_of_other_data_are_refused(text):
    with pytest.raises(ConfigError, match="is not for configs"):
        parse(text, "here")
