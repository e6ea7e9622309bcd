"""The run folder: all that a run leaves behind, one folder with the same files for every run.

    config.yaml          the resolved config
    environment.json     versions, machine, git commit
    rounds.jsonl         one object a round (`RoundRecord`)
    ledger.parquet       one row per message (`Ledger`)
    summary.json         the outcome (`Summary`)
    model.safetensors    parameters and buffers by name
    errors.log           tracebacks; absent if there were none
    report.html          the report; written by `fedsbc.report`
    checkpoint/          what a resume needs; written by the run

Whole files are replaced in one step; `rounds.jsonl` and `errors.log` grow line by line.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from fedsbc import environment
from fedsbc.arrays import Vector
from fedsbc.errors import ConfigError, RunError
from fedsbc.files import replacing, write_arrays, write_text
from fedsbc.layout import Layout
from fedsbc.ledger import Ledger
from fedsbc.records import RoundRecord, Summary


class RunFolder:
    """One run's folder; `create` makes it, `open` finds it again.

    Attributes:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: str | Path, config_yaml: str) -> "RunFolder":
        """Make the folder, with the resolved config in it.

        Raises:
            ConfigError: the path exists already, or cannot be made.
        """
        path = Path(path)
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            more = f", or go on with its run: fedsbc resume {path}"
            raise ConfigError(
                f"{path}: exists already; name another folder with --out"
                f"{more if (path / 'checkpoint').is_dir() else ', or remove this one'}"
            ) from None
        except OSError as error:
            raise ConfigError(f"{path}: the run folder cannot be made ({error})") from error
        write_text(path / "config.yaml", config_yaml)
        return cls(path)

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Find the folder of an earlier run.

        Raises:
            ConfigError: there is no run folder at that path.
        """
        path = Path(path)
        if not (path / "config.yaml").is_file():
            found = "holds no config.yaml" if path.is_dir() else "is not a folder"
            raise ConfigError(f"{path}: {found}; expected the folder that a run wrote")
        return cls(path)

    def config(self) -> dict[str, Any]:
        """Return the resolved config as plain data.

        Raises:
            RunError: `config.yaml` is not a config.
        """
        path = self.path / "config.yaml"
        try:
            config = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise RunError(f"{path}: cannot be read ({error})") from error
        if not isinstance(config, dict):
            raise RunError(f"{path}: expected a mapping, found {type(config).__name__}")
        return config

    def append_round(self, record: RoundRecord) -> None:
        """Add one line to `rounds.jsonl`; it is with the system when the call returns."""
        self._append("rounds.jsonl", json.dumps(record.to_dict(), allow_nan=False) + "\n")

    def append_error(self, text: str) -> None:
        """Add a message or a traceback to `errors.log`."""
        self._append("errors.log", text.rstrip("\n") + "\n\n")

    def rounds(self) -> list[RoundRecord]:
        """Return the rounds so far; a last line that a kill cut short is left out.

        Raises:
            RunError: another line is not a round.
        """
        path = self.path / "rounds.jsonl"
        if not path.exists():
            return []
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        records = []
        for number, line in enumerate(lines, start=1):
            try:
                records.append(RoundRecord.from_dict(json.loads(line)))
            except ValueError as error:
                raise RunError(f"{path}:{number}: not a round ({error})") from error
        return records

    def cut_back(self, config_yaml: str, records: Sequence[RoundRecord]) -> None:
        """Make ready for a run that goes on after some rounds: later ones and the outcome go.

        Args:
            config_yaml: the resolved config, with the number of rounds that is asked for now.
            records: the rounds that stay.
        """
        (self.path / "summary.json").unlink(missing_ok=True)
        lines = [json.dumps(record.to_dict(), allow_nan=False) + "\n" for record in records]
        write_text(self.path / "rounds.jsonl", "".join(lines))
        write_text(self.path / "config.yaml", config_yaml)

    def write_ledger(self, ledger: Ledger) -> None:
        """Write `ledger.parquet`."""
        with replacing(self.path / "ledger.parquet") as temporary:
            ledger.to_parquet(temporary)

    def ledger(self) -> Ledger:
        """Return the ledger.

        Raises:
            RunError: there is none, or it cannot be read.
        """
        return Ledger.from_parquet(self.path / "ledger.parquet")

    def write_summary(self, summary: Summary) -> None:
        """Write `summary.json`."""
        self.write_json("summary.json", summary.to_dict())

    def has_summary(self) -> bool:
        """Whether the run came to its end."""
        return (self.path / "summary.json").exists()

    def summary(self) -> Summary:
        """Return the outcome.

        Raises:
            RunError: the run has not ended, or `summary.json` cannot be read.
        """
        if not self.has_summary():
            raise RunError(f"{self.path}: the run has not ended; fedsbc resume {self.path}")
        try:
            return Summary.from_dict(json.loads((self.path / "summary.json").read_text("utf-8")))
        except ValueError as error:
            raise RunError(f"{self.path / 'summary.json'}: cannot be read ({error})") from error

    def write_environment(self) -> None:
        """Write `environment.json`: versions, machine and git commit."""
        self.write_json("environment.json", environment.describe())

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        """Write one JSON file of the folder in one step; NaN and infinity are refused."""
        write_text(self.path / name, json.dumps(data, indent=2, allow_nan=False) + "\n")

    def write_model(
        self, layout: Layout, weights: Vector, buffer_layout: Layout, buffers: Vector
    ) -> None:
        """Write `model.safetensors`: each tensor by its name, float32, in its shape.

        Args:
            layout: the parameters.
            weights: their values, shape (layout.size,).
            buffer_layout: the float buffers; names differ from those of the parameters.
            buffers: their values, shape (buffer_layout.size,).
        """
        tensors = named_tensors(layout, weights) | named_tensors(buffer_layout, buffers)
        assert len(tensors) == len(layout.tensors) + len(buffer_layout.tensors), "names differ"
        with replacing(self.path / "model.safetensors") as temporary:
            write_arrays(temporary, tensors)

    def model(self) -> dict[str, NDArray[np.float32]]:
        """Return the tensors of `model.safetensors` by name.

        Raises:
            RunError: there is no such file, or it cannot be read.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        path = self.path / "model.safetensors"
        try:
            return dict(load_file(path))
        except (OSError, SafetensorError) as error:
            raise RunError(f"{path}: cannot be read ({error})") from error

    def _append(self, name: str, text: str) -> None:
        """Add text to a file of the folder."""
        with (self.path / name).open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)


def named_tensors(layout: Layout, vector: Vector) -> dict[str, NDArray[np.float32]]:
    """Return a flat vector's tensors by name, each a view in its shape."""
    views = zip(layout.tensors, layout.split(vector), strict=True)
    return {spec.name: view.reshape(spec.shape) for spec, view in views}
