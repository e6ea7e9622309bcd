"""The command line itself: help, exit statuses, errors that nobody foresaw."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest
import typer

from fedsbc import __version__
from fedsbc.errors import RunError
from sims import cli, errors


@pytest.fixture(autouse=True)
def logs(tmp_path, monkeypatch):
    """Tracebacks go to the test's own folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def commands(command=None, path=()):
    """Return the words of every command, groups included."""
    command = command or typer.main.get_command(cli.app)
    inner = getattr(command, "commands", {})
    return [path, *(found for name in inner for found in commands(inner[name], (*path, name)))]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_has_help(words, capsys):
    assert cli.run([*words, "--help"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith("Usage: " + " ".join(["fedsbc", *words]))
    _, purpose = said.out.split("\n\n")[:2]
    assert len(purpose.split()) >= 3, "a command says what it does"


def test_the_commands_are_there():
    assert {" ".join(words) for words in commands()} >= {
        "run",
        "compare",
        "inspect",
        "bench compressors",
    }


def test_help_imports_nothing_heavy():
    script = """
import sys
from sims.cli import run
status = run(["--help"])
heavy = {"torch", "flwr", "ray", "pydantic", "numpy", "pyarrow", "plotly", "yaml", "rich"}
print(sorted(heavy & sys.modules.keys()), file=sys.stderr)
sys.exit(status)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0
    assert ended.stderr.strip() == "[]"


def test_version(capsys):
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"fedsbc {__version__}\n"


def test_the_version_is_that_of_the_package():
    pyproject = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    assert f'version = "{__version__}"' in pyproject


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["rn"], "No such command 'rn'"),
        (["run"], "Missing argument 'CONFIG'"),
        (["run", "a.yaml", "--nope"], "No such option"),
        (["compare", "a"], "Missing option '--out'"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(arguments, expected, capsys):
    assert cli.run(arguments) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert expected in error
    assert "--help)" in error


def test_no_command_shows_the_help(capsys):
    assert cli.run([]) == 2
    assert "Commands:" in capsys.readouterr().err


@pytest.mark.parametrize("where", [0, 1, 2])
def test_debug_shows_the_traceback_wherever_it_stands(where, capsys):
    arguments = ["run", "nowhere.yaml"]
    arguments.insert(where, "--debug")
    assert cli.run(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("Traceback")
    assert error.splitlines()[-1] == "fedsbc: nowhere.yaml: there is no such file"


@pytest.fixture
def run_with(monkeypatch):
    """Run `fedsbc fail`, a command that raises an error, through the whole command line."""

    def run(error):
        app = typer.Typer(pretty_exceptions_enable=False)
        app.callback()(lambda: None)

        @app.command("fail")
        def fail():
            raise error

        monkeypatch.setattr(cli, "app", app)
        return cli.run(["fail"])

    return run


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (RunError("a\nb"), 1, "fedsbc: a b\n"),
        (KeyboardInterrupt(), 130, "fedsbc: interrupted\n"),
        (click.Abort(), 130, "fedsbc: interrupted\n"),
        (typer.Exit(3), 3, ""),
        (typer.Exit(), 0, ""),
        (OSError(28, "No space left on device"), 1, None),
    ],
    ids=lambda value: repr(value) if isinstance(value, BaseException) else "",
)
def test_exit_status(run_with, error, status, line, capsys):
    assert run_with(error) == status
    said = capsys.readouterr().err
    assert said == line or (line is None and "No space left" in said)


def test_an_unforeseen_error_says_where_its_traceback_is(run_with, capsys):
    assert run_with(KeyError("x")) == 1
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    log = Path(re.search(r"traceback in (.*)\)", error)[1])
    assert "KeyError: 'x'" in log.read_text()


def test_an_unforeseen_error_of_a_run_goes_to_its_folder(tmp_path):
    said = errors.unexpected(KeyError("x"), tmp_path)
    assert str(tmp_path / "errors.log") in str(said)
    assert "KeyError: 'x'" in (tmp_path / "errors.log").read_text()


def test_a_full_disk_is_one_line_without_a_traceback(tmp_path):
    said = errors.unexpected(OSError(28, "No space left on device", "run/rounds.jsonl"), tmp_path)
    assert str(said) == "run/rounds.jsonl: No space left on device"
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error():
    script = "from sims.cli import main; import sys; sys.argv = ['fedsbc', '--help']; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait()
