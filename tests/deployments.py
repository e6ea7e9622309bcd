"""What tests of real deployments share: starting runs, waiting, and what must be the same."""

import os
import time
from pathlib import Path

import numpy as np

from fedsbc.layout import Layout
from fedsbc.payload import decode
from fedsbc.state_files import FileHome
from fedsbc.state_slot import Slot
from sims.deploy.app_folder import write_app
from sims.deploy.processes import MARK
from tests.experiments import initial

NUM_NODES = 3
RUN_WITHIN_S = 500.0


def submit(deployment, name, config):
    """Start a run; return its Flower run id and where its folder will be."""
    app, out = deployment.folder / f"app-{name}", deployment.folder / f"run-{name}"
    write_app(app, config, out)
    return deployment.submit(app), out


def wait_for(condition, timeout_s=RUN_WITHIN_S):
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)
    return found


def forget_deltas(deployment):
    for path in (deployment.folder / "deltas").iterdir():
        path.unlink()


def num_rounds(out):
    rounds = out / "rounds.jsonl"
    return len(rounds.read_text().splitlines()) if rounds.exists() else 0


def server_apps(deployment):
    """Return the ServerApp processes of a deployment."""
    return [
        pid for pid in deployment.processes.left_over()
        if b"flwr-serverapp" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]  # fmt: skip


def is_at_work(deployment, name):
    """Whether a node has a request to train that it has not answered yet."""
    log = deployment.processes.log(name)
    return log.count("Receiving: train message") > log.count("Sending: train message")


def check_nodes(deployment, folder, layout):
    """Check that every node has the server's weights, and that nothing is lost or double."""
    weights = flat_model(folder, layout).tobytes()
    for client_id in range(NUM_NODES):
        assert newest_state(deployment.folder, client_id).arrays["base"].tobytes() == weights
        check_mass(deployment.folder, folder.path, client_id, layout)


def check_same(folder, simulated):
    assert folder.summary().model_sha256 == simulated.outcome.server.model_hash()
    ledgers = (folder.ledger().rows, simulated.outcome.ledger.rows)
    assert sorted(ledgers[0], key=repr) == sorted(ledgers[1], key=repr)


def layout_of(config):
    _, tensors = initial(config)
    return Layout.of((name, array.shape) for name, array in tensors.items())


def flat_model(folder, layout):
    tensors = folder.model()
    return np.concatenate([tensors[spec.name].reshape(-1) for spec in layout.tensors])


def newest_state(folder, client_id):
    states = folder / "data" / f"client-{client_id:05d}"
    headers = [Slot(path).header() for path in states.iterdir()]
    newest = max((h for h in headers if h), key=lambda header: header["round"])
    return FileHome(states, newest["run_id"], client_id).load(10**6)


def check_mass(folder, out, client_id, layout):
    """Used updates and what the node keeps add up to its changes."""
    total, used = np.zeros(layout.size), np.zeros(layout.size)
    for path in (folder / "deltas").glob(f"delta-{client_id:05d}-*.npy"):
        total += np.load(path)
    for path in (out / "payloads").glob(f"*-up-{client_id:05d}.fedsbc"):
        used += decode(path.read_bytes(), layout).to_dense()
    state = newest_state(folder, client_id)
    kept = state.arrays["residual"].astype(np.float64)
    is_used = list((out / "payloads").glob(f"round-{state.round:06d}-up-{client_id:05d}.fedsbc"))
    if "pending" in state.arrays and not is_used:
        kept += decode(state.arrays["pending"].tobytes(), layout).to_dense()
    np.testing.assert_allclose(used + kept, total, rtol=0, atol=1e-5 * abs(total).max())


def started_in(folder):
    """Return the ids of processes that carry our mark and work in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = MARK.encode() in (entry / "environ").read_bytes()
            if is_ours and str(folder) in os.readlink(entry / "cwd"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
