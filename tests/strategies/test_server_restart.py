"""A server of devices that is killed goes on after its last whole round."""

import pytest
from flwr.app import Context, RecordDict

from fedsbc.checkpoint import generations
from fedsbc.config import to_json
from fedsbc.errors import ConfigError
from fedsbc.message import FIELDS
from fedsbc.run_folder import RunFolder
from sims.flower_private import RUN_ID
from strategies.app import app
from tests.experiments import small
from tests.local_grid import LocalGrid
from tests.strategies.test_rounds import is_hello


class Killed(BaseException):
    """The end of a server that has no time to say anything."""


def config_of(*overrides):
    return small("rounds=5", "engine.kind=deploy", "downstream.name=topk",
                 "downstream.density=0.05", *overrides)  # fmt: skip


def serve(config, out, states, die_in=None, **run_config):
    """Call the ServerApp; its devices have their states on disk, out of its reach."""
    num_left = [3]

    def fault(message):
        fields = message.content[FIELDS]
        if not is_hello(message) and fields["round"] == die_in:
            num_left[0] -= 1  # some devices have trained by then, and stored it
            if num_left[0] == 0:
                raise Killed
        return

    grid = LocalGrid(config, node_config={"state-dir": str(states)}, fault=fault)
    settings = {"experiment": to_json(config), "out": str(out), **run_config}
    app(grid, Context(RUN_ID, 1, {}, RecordDict(), settings))
    return grid


def killed(config, tmp_path, die_in=4):
    with pytest.raises(Killed):
        serve(config, tmp_path / "run", tmp_path / "states", die_in)


def test_the_run_goes_on_and_ends_as_one_that_was_never_killed(tmp_path):
    config = config_of("final_sync=true")
    killed(config, tmp_path)
    newest = generations(tmp_path / "run" / "checkpoint")[0]
    assert newest.round == 3, "each round is on the disk before the next begins"
    serve(config, "", tmp_path / "states", resume=str(tmp_path / "run"))
    serve(config, tmp_path / "whole", tmp_path / "other")
    runs = [RunFolder.open(tmp_path / name) for name in ("run", "whole")]
    assert runs[0].summary().completed
    assert runs[0].summary().model_sha256 == runs[1].summary().model_sha256
    assert runs[0].ledger().rows == runs[1].ledger().rows
    assert [record.round for record in runs[0].rounds()] == [1, 2, 3, 4, 5]


def test_what_devices_have_lost_in_the_meantime_is_said(tmp_path, capsys):
    config = config_of()
    killed(config, tmp_path)
    for path in (tmp_path / "states").glob("client-00003.*"):
        path.unlink()
    serve(config, "", tmp_path / "states", resume=str(tmp_path / "run"))
    said = capsys.readouterr()
    lines = [line for line in (said.out + said.err).splitlines() if "client 3" in line]
    assert lines == [
        "client 3 has lost its state of version 2: it gets the full model, its residual is gone"
    ]
    assert RunFolder.open(tmp_path / "run").summary().completed


def test_a_server_that_goes_on_from_an_older_version_says_what_is_void(tmp_path, capsys):
    """The newest generation is damaged: the devices are ahead, and get the full model."""
    config = config_of("participation=1", "failures.abort_after=2")
    killed(config, tmp_path, die_in=5)
    newest, _ = generations(tmp_path / "run" / "checkpoint")
    (newest.path / "server.safetensors").write_bytes(b"x")
    serve(config, "", tmp_path / "states", resume=str(tmp_path / "run"))
    said = capsys.readouterr()
    assert "its content has changed" in said.out or "bytes long, expected" in said.out
    assert "was at version 4, but the run goes on from 3" in said.out + said.err
    folder = RunFolder.open(tmp_path / "run")
    assert folder.summary().completed
    assert folder.rounds()[-1].participants == 8


def test_another_config_is_refused(tmp_path):
    killed(config_of(), tmp_path)
    with pytest.raises(ConfigError, match=r"`upstream.density` is 0.5, but was"):
        serve(config_of("upstream.density=0.5"), "", tmp_path / "states",
              resume=str(tmp_path / "run"))  # fmt: skip


def test_every_fifth_round_is_too_seldom_for_devices(tmp_path):
    with pytest.raises(ConfigError, match="devices keep the states of their last two rounds"):
        serve(config_of("checkpoint.every=5"), tmp_path / "run", tmp_path / "states")


def test_a_run_on_devices_can_be_left_unsaved(tmp_path):
    killed(config_of("checkpoint.every=0"), tmp_path)
    assert generations(tmp_path / "run" / "checkpoint") == []
