"""The Flower app of a deployment: the packages of this installation and one experiment.

A checkout has a `pyproject.toml` that `flwr run` reads, an installed fedsbc has none. So an app
folder is made from the packages themselves, with the resolved config inside.
"""

import json
import shutil
from pathlib import Path

import fedsbc
from fedsbc.config import Config, to_json

PACKAGES = ("fedsbc", "strategies", "clients", "configs")

PROJECT = """[project]
name = "fedsbc"
version = "{version}"
description = "Federated learning on Flower with sparse binary compression"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "fedsbc"

[tool.flwr.app.components]
serverapp = "strategies.app:app"
clientapp = "clients.app:app"

[tool.flwr.app.config]
experiment = {experiment}
out = {out}
resume = ""
"""


def write_app(folder: Path, config: Config, out: Path) -> None:
    """Write an app for `flwr run` that runs one experiment.

    Args:
        folder: made here.
        config: the experiment.
        out: the run folder, on the SuperLink's machine.
    """
    root = Path(fedsbc.__file__).parent.parent
    for package in PACKAGES:
        ignore = shutil.ignore_patterns("__pycache__", "py.typed")
        shutil.copytree(root / package, folder / package, ignore=ignore)
    values = {
        "version": fedsbc.__version__,
        "experiment": json.dumps(to_json(config)),  # a JSON string is a TOML string
        "out": json.dumps(str(out.resolve())),
    }
    (folder / "pyproject.toml").write_text(PROJECT.format(**values), encoding="utf-8")
