"""When a run is saved, and how the server's side goes into a snapshot and comes back."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from flwr.serverapp import Grid
from numpy.typing import NDArray

from fedsbc import environment
from fedsbc.checkpoint import Cost, Gather, Snapshot, save
from fedsbc.config import Config, to_json
from fedsbc.errors import ConfigError, FedsbcError
from fedsbc.layout import Layout
from fedsbc.payload import measure
from fedsbc.records import RoundRecord
from fedsbc.units import human_seconds, human_share

from .members import Member
from .rounds import Rounds
from .server import Sent, Server


@runtime_checkable
class KeepsStates(Protocol):
    """A Grid whose clients keep their states in slot files that the server can read."""

    state_folder: Path


@runtime_checkable
class GathersStates(KeepsStates, Protocol):
    """A Grid some of whose clients keep their states on other nodes."""

    def gather(self, run_id: str, before_round: int, known: Mapping[int, int]) -> list[Path]:
        """Bring those states here, see `fedsbc.checkpoint.save`."""


def snapshot_of(rounds: Rounds, num_aborted: int, records: Sequence[RoundRecord]) -> Snapshot:
    """Return a snapshot after a closed round: references to what is never changed in place."""
    server = rounds.server
    arrays: dict[str, NDArray[Any]] = {"weights": server.weights, "buffers": server.buffers}
    if server.residual is not None:
        arrays["residual"] = server.residual
    arrays.update({f"state.{name}": array for name, array in server.state.items()})
    for version, sent in server.history.items():
        arrays[f"history.{version}"] = np.frombuffer(sent.payload, np.uint8)
    return Snapshot(
        run_id=rounds.run_id,
        round=server.version,
        num_aborted=num_aborted,
        members=[_known(member) for member in rounds.members.values()],
        layouts=(server.layout.hash, server.buffer_layout.hash),
        arrays=arrays,
        ledger=rounds.ledger.so_far(),
        records=tuple(records),
    )


def _known(member: Member) -> dict[str, Any]:
    """Return what the server knows of a client; its node is another one in each start."""
    known = dict(vars(member))
    del known["node_id"]
    return known


def restore_server(server: Server, snapshot: Snapshot) -> None:
    """Bring a new server to where the snapshot's was."""
    arrays = snapshot.arrays
    assert snapshot.layouts == (server.layout.hash, server.buffer_layout.hash), "checked before"
    server.weights = _aligned(arrays["weights"], server.layout)
    server.buffers = _aligned(arrays["buffers"], server.buffer_layout)
    if "residual" in arrays:
        server.residual = _aligned(arrays["residual"], server.layout)
    server.state = _part(arrays, "state.")
    payloads = {int(v): array.tobytes() for v, array in _part(arrays, "history.").items()}
    for version, payload in sorted(payloads.items()):
        sent = Sent(payload, measure(payload, server.layout)) if payload else Sent()
        server.history[version] = sent
    server.version = snapshot.round


def _part(arrays: Any, prefix: str) -> dict[str, NDArray[Any]]:
    return {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}


def _aligned(array: NDArray[np.float32], layout: Layout) -> NDArray[np.float32]:
    vector = layout.zeros()
    vector[:] = array
    return vector


def restore_members(members: dict[int, Member], snapshot: Snapshot) -> list[str]:
    """Give the members of a new start what the server knew of them.

    Returns:
        What was lost, a line for each client that has no state of this run any more, or one of a
        later version than the run goes on from.

    Raises:
        ConfigError: they are not those of the snapshot, or have other data.
    """
    lost = []
    for known in snapshot.members:
        member = members.get(known["client_id"])
        found = None if member is None else member.num_samples
        if member is None or found != known["num_samples"]:
            raise ConfigError(
                f"client {known['client_id']} has {found} samples, but had "
                f"{known['num_samples']} at the checkpoint: the data have changed"
            )
        is_lost = member.base_version < 0  # then its state is, and it needs the full model
        if is_lost and known["base_version"] >= 0:
            lost.append(
                f"client {member.client_id} has lost its state of version {known['base_version']}: "
                "it gets the full model, its residual is gone"
            )
        if member.base_version > snapshot.round:
            lost.append(
                f"client {member.client_id} was at version {member.base_version}, but the run goes "
                f"on from {snapshot.round}: what it did since then is void"
            )
        for name, value in known.items():
            setattr(member, name, -1 if name == "base_version" and is_lost else value)
    return lost


def _rounds_between(config: Config) -> int:
    """Return the rounds between two checkpoints, 0 for none.

    Devices keep the states of their last two rounds, so that a server which goes on after the last
    whole round finds the states that this one started from; of an older round they are gone.

    Raises:
        ConfigError: devices would have gone on too far.
    """
    every = config.checkpoint.every
    if config.engine.kind != "deploy":
        return every or 0
    if every not in (None, 0, 1):
        raise ConfigError(
            f"checkpoint.every: {every}, but devices keep the states of their last two rounds "
            "alone; on engine.kind: deploy use 1 or null (after each round), or 0 (never)"
        )
    return 1 if every is None else every


class Checkpoints:
    """Saves a run every so many rounds, at its end, and where it breaks off.

    Args:
        folder: `checkpoint/` of the run folder.
        config: the run's.
        tell: shows the user a line.
    """

    def __init__(self, folder: Path, config: Config, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._config = config
        self._on_devices = config.engine.kind == "deploy"
        self._every = _rounds_between(config)
        self._tell = tell
        self._states: Path | None = None
        self._gather: Gather | None = None
        self._first: Snapshot | None = None
        self._last: Snapshot | None = None
        self._has_failed = False
        self._costs: list[Cost] = []

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return {"config": json.loads(to_json(self._config)), "environment": environment.describe()}

    def begin(self, grid: Grid, snapshot: Snapshot) -> None:
        """Take note of where the run begins; a folder that cannot be written to shows here.

        Raises:
            ConfigError: the engine keeps the clients' states out of reach.
            RunError: the checkpoint cannot be written.
        """
        if isinstance(grid, KeepsStates):
            self._states = grid.state_folder
            self._gather = grid.gather if isinstance(grid, GathersStates) else None
        elif self._every and not self._on_devices:
            raise ConfigError(
                f"checkpoint.every: {self._every}, but this engine keeps the states of clients "
                "where no checkpoint can reach them; use engine.kind: ray, or checkpoint.every: 0"
            )
        self._first = self._last = snapshot
        if self._every:
            self._save(snapshot)

    def round_done(self, snapshot: Snapshot, *, is_last: bool) -> None:
        """Note that a round was closed, and save it where it is its turn.

        Raises:
            RunError: the checkpoint cannot be written.
        """
        self._last = snapshot
        if self._every and (is_last or snapshot.round % self._every == 0):
            self._save(snapshot)
        if is_last and self._costs:
            self._tell_cost(snapshot)

    def broken_off(self) -> None:
        """Save the last whole round of a run that is breaking off; errors are only told."""
        is_saved = self._states is not None or (self._on_devices and self._every)
        if self._last is None or not is_saved or self._has_failed:
            return
        try:
            self._save(self._last)
        except FedsbcError as error:
            self._tell(str(error))
            return
        run = self._folder.parent
        command = "flwr run, as before, with resume in its run config:" * self._on_devices
        self._tell(
            f"round {self._last.round} is saved; to go on: {command or 'fedsbc resume'} {run}"
        )

    def _save(self, snapshot: Snapshot) -> None:
        try:
            cost = save(self._folder, snapshot, self._facts, self._states, self._gather)
        except FedsbcError:
            self._has_failed = True
            raise
        if cost is not None:
            self._costs.append(cost)

    def _tell_cost(self, snapshot: Snapshot) -> None:
        """Say what the checkpoints cost; bytes and seconds of each are in `costs.jsonl`."""
        assert self._first is not None, "the run has begun"
        rounds_s = sum(record.wall_s for record in snapshot.records[len(self._first.records) :])
        seconds = sum(cost.seconds for cost in self._costs)
        self._tell(
            f"checkpoints: {len(self._costs)} took {human_seconds(seconds)}, "
            f"{human_share(seconds / rounds_s)} of the rounds' time "
            f"(see {self._folder / 'costs.jsonl'})"
        )
