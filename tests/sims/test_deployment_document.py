"""docs/deployment.md as it stands: certificates, keys, SuperLink, SuperNodes, a run, the end."""

import re
import shutil

import pytest

from fedsbc.run_folder import RunFolder
from sims.deploy.processes import Processes, free_ports
from tests.experiments import play
from tests.local_grid import LocalGrid
from tests.sims.conftest import ROOT

pytestmark = pytest.mark.slow  # real processes and Flower's polling: minutes

TEXT = (ROOT / "docs" / "deployment.md").read_text()
SMALLER = "model.name=mlp model.hidden=16 clients.local_steps=2"


@pytest.mark.timeout(1200)
def test_the_commands_of_the_document_run_one_after_the_other(tmp_path):
    by_hand = TEXT.partition("## On hosts of your own")[2]
    script = "set -e\n" + "".join(re.findall(r"```sh\n(.*?)```", by_hand, re.DOTALL))
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    for old, new in {
        "PORT=9092": f"PORT={free_ports(1)[0]}",
        "/path/to/fedsbc": str(ROOT),
        "--set clients.count=2": f"--set clients.count=2 --set {SMALLER.replace(' ', ' --set ')}",
        'set=\\"engine.kind': f'set=\\"{SMALLER} engine.kind',
    }.items():
        assert old in script, old
        script = script.replace(old, new)
    (tmp_path / "commands.sh").write_text(script)
    with Processes(tmp_path, {"PYTHONPATH": str(ROOT)}) as processes:
        ended = processes.run(["bash", "commands.sh"], 1000)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count('"status": "finished:completed"') == 1 + 2, ended.stdout  # two lists
    folder = RunFolder.open(tmp_path / "run")
    config = _config()
    simulated = play(config, LocalGrid(config, tmp_path / "simulated"))
    assert folder.summary().model_sha256 == simulated.outcome.server.model_hash()


def _config():
    from fedsbc import config as configs

    overrides = [*SMALLER.split(), "clients.count=2", "rounds=4", "participation=1"]
    return configs.load(ROOT / "configs" / "demo" / "sbc.yaml", overrides)
