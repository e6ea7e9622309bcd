"""A stranger's package of one of our names gives one clear line."""

import pytest

from fedsbc.errors import ConfigError
from strategies.names import NAMES, check_names


def test_our_own_packages_are_no_strangers():
    check_names()


@pytest.mark.parametrize("name", NAMES)
def test_a_package_where_flower_was_started_is_named(name, tmp_path, monkeypatch):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=rf"{name}: this folder hides fedsbc's package"):
        check_names()


@pytest.mark.parametrize("name", NAMES)
def test_a_package_on_the_path_is_named(name, tmp_path, monkeypatch):
    import sys

    (tmp_path / "app" / name).mkdir(parents=True)
    (tmp_path / "app" / name / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "app")
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ConfigError, match=rf"app/{name}: this folder hides"):
        check_names()
