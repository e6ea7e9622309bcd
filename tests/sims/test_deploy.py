"""Real SuperNodes on this machine: TLS, keys, restarts; the bytes are those of the simulation."""

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fedsbc.run_folder import RunFolder
from sims.deploy.app_folder import write_app
from sims.deploy.certificates import make_certificates
from sims.deploy.data import write_device_files
from sims.deploy.deployment import Deployment
from sims.deploy.local import node_config
from tests.deployments import (
    NUM_NODES,
    RUN_WITHIN_S,
    check_nodes,
    check_same,
    forget_deltas,
    is_at_work,
    layout_of,
    num_rounds,
    server_apps,
    started_in,
    submit,
    wait_for,
)
from tests.experiments import SMALL, play, small
from tests.hostile import ATTACKS, IN_TURN, make_hostile
from tests.hostile import CLIENT as HOSTILE
from tests.local_grid import LocalGrid

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # real deployments: minutes


def config_of(*overrides):
    return small(
        f"clients.count={NUM_NODES}", "downstream.name=topk", "downstream.density=0.05",
        "engine.kind=deploy", *overrides,
    )  # fmt: skip


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    """A SuperLink with three registered SuperNodes that are connected."""
    folder = tmp_path_factory.mktemp("deploy")
    with Deployment(folder, {"PYTHONPATH": str(ROOT)}) as made:
        made.start_superlink()
        files = write_device_files(config_of(), folder / "data")
        (folder / "deltas").mkdir()
        for client_id, file in enumerate(files):
            config = {**node_config(client_id, file), "record-dir": str(folder / "deltas")}
            made.start_node(made.add_node(f"node-{client_id}", config).name)
        yield made
    assert made.processes.left_over() == []


def test_deploy_local_gives_the_weights_and_the_ledger_of_a_simulation(tmp_path):
    """SBC up, STC down, five rounds; nothing stays but the run folder."""
    overrides = ["rounds=5", "upstream.name=sbc", "downstream.name=stc", "downstream.density=0.05"]
    settings = [word for override in overrides for word in ("--set", override)]
    command = [sys.executable, "-m", "sims.cli", "deploy", "local", "--nodes", str(NUM_NODES)]
    command += ["--config", str(SMALL), *settings, "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert ended.returncode == 0, ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert started_in(tmp_path) == []
    config = small(f"clients.count={NUM_NODES}", "engine.kind=deploy", *overrides)
    simulated = play(config, LocalGrid(config, tmp_path / "simulated"))
    folder = RunFolder.open(tmp_path / "out")
    assert folder.has_summary()
    assert (folder.path / "report.html").exists()
    check_same(folder, simulated)


def test_an_unregistered_key_is_refused(deployment):
    stranger = deployment.add_node("stranger", {"partition-id": 0}, register=False)
    deployment.start_node(stranger.name)
    wait_for(lambda: not deployment.processes.is_running(stranger.name), 120)
    assert "SuperNode ID" not in deployment.processes.log(stranger.name)
    assert "Failed to initialize the connection" in deployment.processes.log(stranger.name)
    deployment.processes.stop(stranger.name)


def test_a_superlink_of_another_authority_is_refused(deployment, tmp_path):
    other = make_certificates(tmp_path, ["127.0.0.1"])
    victim = deployment.add_node("victim", {"partition-id": 0})
    deployment.start_node(victim.name, authority=other.authority)
    log = deployment.processes.log
    wait_for(lambda: "CERTIFICATE_VERIFY_FAILED" in log(victim.name) or
             not deployment.processes.is_running(victim.name), 120)  # fmt: skip
    deployment.processes.stop(victim.name)
    assert "SuperNode ID" not in log(victim.name)


def test_nodes_that_are_killed_and_restarted_lose_nothing(deployment):
    """Node 1 is stopped and started again at once; node 2 is killed in the middle of a round."""
    forget_deltas(deployment)
    config = config_of("rounds=6", "debug.keep_payloads=true", "failures.client_timeout_s=60",
                       "failures.abort_after=6", "final_sync=true")  # fmt: skip
    run_id, out = submit(deployment, "restarts", config)
    wait_for(lambda: num_rounds(out) >= 1 and is_at_work(deployment, "node-2"), 150)
    deployment.processes.kill("node-2")
    deployment.processes.stop("node-1")
    deployment.restart_node("node-1", within_s=60)
    deployment.restart_node("node-2", within_s=180)
    assert deployment.wait(run_id, RUN_WITHIN_S) == ("finished:completed", "N/A")
    folder = RunFolder.open(out)
    assert len(folder.rounds()) == 6
    assert folder.summary().failures >= 1
    check_nodes(deployment, folder, layout_of(config))


def test_a_server_that_is_killed_and_restarted_goes_on_with_the_run(deployment):
    """All ends as in a simulation that nothing happened to, and every node has the weights."""
    forget_deltas(deployment)
    config = config_of("rounds=5", "final_sync=true", "debug.keep_payloads=true")
    run_id, out = submit(deployment, "server", config)
    wait_for(lambda: num_rounds(out) >= 2, 200)
    deployment.processes.kill("superlink")
    wait_for(lambda: not server_apps(deployment), 60)
    assert num_rounds(out) < 5
    deployment.start_superlink()
    run_id = deployment.submit(deployment.folder / "app-server", resume=out)
    assert deployment.wait(run_id, RUN_WITHIN_S) == ("finished:completed", "N/A")
    folder = RunFolder.open(out)
    assert [record.round for record in folder.rounds()] == [1, 2, 3, 4, 5]
    assert [record.participants for record in folder.rounds()] == [NUM_NODES] * 5
    check_same(folder, play(config, LocalGrid(config, deployment.folder / "simulated-server")))
    check_nodes(deployment, folder, layout_of(config))


def test_the_run_goes_on_without_a_node_that_is_hostile(deployment):
    """Its own SuperNode, key and connection; another attack in each round, a replay at the end."""
    config = config_of(f"rounds={len(IN_TURN)}", "failures.min_replies=2", "final_sync=true")
    app, out = deployment.folder / "app-hostile", deployment.folder / "run-hostile"
    write_app(app, config, out)
    make_hostile(app)
    run_id = deployment.submit(app)
    assert deployment.wait(run_id, RUN_WITHIN_S) == ("finished:completed", "N/A")
    folder = RunFolder.open(out)
    assert [r.participants for r in folder.rounds()] == [NUM_NODES - 1] * len(IN_TURN)
    lines = [line for line in (out / "errors.log").read_text().splitlines() if line]
    expected = [*ATTACKS.values(), f"reply has round 1; asked for {len(IN_TURN)}"]
    assert len(lines) == len(IN_TURN), lines
    for round, (line, reason) in enumerate(zip(lines, expected, strict=True), start=1):
        assert line.startswith(f"round {round}, client {HOSTILE}: update refused: "), line
        assert reason in line
    assert all(np.isfinite(tensor).all() for tensor in folder.model().values())


def test_a_node_that_joins_again_after_a_kill_takes_part_in_the_next_run(deployment):
    run_id, out = submit(deployment, "again", config_of("rounds=1"))
    assert deployment.wait(run_id, RUN_WITHIN_S)[0] == "finished:completed"
    assert RunFolder.open(out).rounds()[0].participants == NUM_NODES


def test_private_keys_are_nowhere_but_in_their_files(deployment):
    """Not in a run folder, a log, Flower's home and database, a node's state, or the bundle."""
    run_id, out = submit(deployment, "keys", config_of("rounds=1", "debug.keep_payloads=true"))
    assert deployment.wait(run_id, RUN_WITHIN_S)[0] == "finished:completed"
    assert (out / "payloads").is_dir()
    built = deployment.processes.run(
        ["flwr", "build", "--app", f"{deployment.folder}/app-keys"], 60
    )
    assert built.returncode == 0, built.stderr
    (bundle,) = (deployment.folder / "work").glob("*.fab")
    with zipfile.ZipFile(bundle) as files:
        files.extractall(deployment.folder / "bundle")
    keys = [p for p in deployment.keys.iterdir() if p.suffix not in (".pem", ".pub")]
    assert len(keys) >= NUM_NODES + 1
    secrets = [line for key in keys for line in key.read_bytes().splitlines()[1:-1]]
    for key in keys:
        assert key.stat().st_mode & 0o077 == 0
    for path in deployment.folder.rglob("*"):
        if path.is_file() and path not in keys:
            content = path.read_bytes()
            assert b"PRIVATE KEY" not in content or path.suffix == ".py", path
            assert not any(secret in content for secret in secrets if len(secret) > 60), path


def test_ctrl_c_stops_everything_that_was_started(tmp_path):
    command = [sys.executable, "-m", "sims.cli", "deploy", "local", "--nodes", "2"]
    command += ["--config", str(ROOT / "tests" / "small.yaml"), "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        wait_for(lambda: list(tmp_path.glob("fedsbc-deploy-*/work/node-00001.log")), 200)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert said.strip().splitlines()[-1] == "fedsbc: interrupted"
    assert list(tmp_path.glob("fedsbc-deploy-*")) == []
    assert started_in(tmp_path) == []
