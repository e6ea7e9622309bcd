"""Payloads that are large for their link, or for what stands before the SuperLink."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from fedsbc.run_folder import RunFolder
from sims.deploy.app_folder import write_app
from sims.deploy.data import write_device_files
from sims.deploy.deployment import Deployment
from sims.deploy.local import node_config
from tests.experiments import small
from tests.relay import Relay
from tests.sims.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # real deployments, slow on purpose

SLOW_BYTES_S = 5000
CHUNK = "FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE"
ONE_MB = ("model.hidden=330", "upstream.name=none", "clients.count=1", "clients.local_steps=1")
"""An update of 1.05 million bytes: 210 s at 5 kB/s."""


def config_of(*overrides):
    return small("engine.kind=deploy", "rounds=1", "failures.abort_after=1", *overrides)


@contextmanager
def deployed(folder, config, environment=None, **relay):
    """Yield a deployment of one node, and the relay between it and the SuperLink."""
    variables = {"PYTHONPATH": str(ROOT), **(environment or {})}
    with Deployment(folder, variables) as deployment:
        deployment.start_superlink()
        (file,) = write_device_files(config, folder / "data")
        node = deployment.add_node("node-0", node_config(0, file))
        with Relay(deployment.certificates, deployment.port, **relay) as between:
            deployment.start_node(node.name, port=between.port)
            yield deployment, between


def run(deployment, config, timeout_s=900):
    app, out = deployment.folder / "app", deployment.folder / "run"
    write_app(app, config, out)
    status, details = deployment.wait(deployment.submit(app), timeout_s)
    return status, details, RunFolder.open(out)


def test_an_upload_that_is_refused_as_too_large_is_a_failure_in_one_line(tmp_path):
    config = config_of(*ONE_MB, "failures.client_timeout_s=120")
    with deployed(tmp_path, config, max_body_bytes=500_000) as (deployment, relay):
        status, details, folder = run(deployment, config)
        log = deployment.processes.log("node-0")
    assert 413 in {answer for _, answer in relay.uploads}
    assert "413" in log, "the device's own log says why"
    assert status == "finished:failed"
    assert "1 rounds in a row could not be used" in details
    lines = [line for line in (folder.path / "errors.log").read_text().splitlines() if line]
    assert lines[0].startswith("round 1, client 0: ")
    assert "no reply within 120 s" in lines[0] or "unavailable" in lines[0]


def test_an_upload_of_200_seconds_arrives(tmp_path):
    config = config_of(*ONE_MB)
    chunks = {CHUNK: "32768"}
    with deployed(tmp_path, config, chunks, up_bytes_s=SLOW_BYTES_S) as (deployment, relay):
        status, details, folder = run(deployment, config)
    assert (status, details) == ("finished:completed", "N/A")
    (record,) = folder.rounds()
    assert record.participants == 1
    assert record.wall_s > 200
    assert sum(size for size, answer in relay.uploads if answer == 200) > 10**6


NEEDED_BYTES = 12 * 2**30


def test_a_model_of_600_mb_passes():
    """150 million float32 parameters there and back."""
    if os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") < NEEDED_BYTES:
        pytest.skip(f"needs {NEEDED_BYTES / 2**30:.0f} GiB of free memory")
    config = config_of("model.hidden=188700", *ONE_MB[1:], "clients.batch_size=4",
                       "evaluate.every=1000")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="fedsbc-large-") as scratch:  # gigabytes: not kept
        with deployed(Path(scratch), config) as (deployment, _):
            status, details, folder = run(deployment, config)
        assert (status, details) == ("finished:completed", "N/A")
        assert folder.summary().num_params > 150_000_000
        (record,) = folder.rounds()
    assert record.participants == 1
    assert record.up_bits >= 8 * 600e6
