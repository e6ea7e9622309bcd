"""Writing a generation, so that a kill at any instant leaves the previous one whole."""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedsbc.checkpoint.generation import (
    FORMAT,
    MANIFEST,
    Generation,
    discard,
    generations,
    in_threads,
    sha256,
    sync,
)
from fedsbc.checkpoint.snapshot import Snapshot, write_snapshot
from fedsbc.checkpoint.states import StateFile, copy_state, newest_states
from fedsbc.errors import RunError, StatesLost

COSTS = "costs.jsonl"

PAUSE_VARIABLE = "FEDSBC_CHECKPOINT_PAUSE_S"
"""Seconds to wait after each file, for tests that kill a run in the middle of a checkpoint."""

Entry = dict[str, Any]
"""A file in the manifest: `bytes`, `sha256`, and for a client's state `round`."""

Gather = Callable[[str, int, Mapping[int, int]], list[Path]]
"""Brings the newest states of a run before a round, but for those of known rounds, by client;
returns the folders that hold them."""


@dataclass(frozen=True)
class Cost:
    """What one checkpoint cost; a line of `costs.jsonl`.

    Attributes:
        round: the last round that is in it.
        seconds: time from its beginning to its end, on this machine.
        written_bytes: bytes of the files that were written.
        linked_bytes: bytes of the states that did not change, which cost nothing.
        states_written: clients whose state was copied.
        states_linked: clients whose state did not change.
    """

    round: int
    seconds: float
    written_bytes: int
    linked_bytes: int
    states_written: int
    states_linked: int


def save(
    folder: Path,
    snapshot: Snapshot,
    facts: Mapping[str, Any],
    states: Path | None,
    gather: Gather | None = None,
) -> Cost | None:
    """Write the generation of a snapshot; afterwards it and the one before are on the disk.

    Args:
        folder: `checkpoint/` of the run folder; made where it is missing.
        snapshot: the server after a closed round.
        facts: see `write_snapshot`.
        states: folder of the clients' slot files; None where clients keep no state here.
        gather: brings the states that other nodes keep, but for those that the previous
            generation has; None where no other node keeps any.

    Returns:
        What it cost; None if the newest generation is of that round already.

    Raises:
        RunError: it cannot be written, for want of space or permission; the previous generation
            is as it was.
        StatesLost: another node is gone, and states with it; the previous generation is whole.
    """
    started = time.monotonic()
    previous = next(iter(generations(folder)), None)
    if previous is not None and previous.round == snapshot.round:
        return None
    building = folder / f".round-{snapshot.round:06d}"
    try:
        folder.mkdir(exist_ok=True)
        _tidy(folder, previous)
        found = _states(snapshot, states, gather, previous)
        files, linked = _build(building, snapshot, facts, found, previous)
        building.rename(folder / f"round-{snapshot.round:06d}")
        sync(folder)
    except (OSError, RunError) as error:
        shutil.rmtree(building, ignore_errors=True)
        if isinstance(error, StatesLost):
            raise
        raise RunError(_failure(folder, snapshot.round, previous, error)) from error
    cost = _cost(snapshot.round, time.monotonic() - started, files, linked)
    with (
        contextlib.suppress(OSError),  # the checkpoint is there, whatever becomes of this line
        (folder / COSTS).open("a", encoding="utf-8", newline="\n") as log,
    ):
        log.write(json.dumps(asdict(cost)) + "\n")
    return cost


def _tidy(folder: Path, keep: Generation | None) -> None:
    """Remove what a kill left behind, and all generations but one."""
    for path in folder.glob(".round-*"):
        shutil.rmtree(path)
    discard(generation for generation in generations(folder) if generation != keep)


def _states(
    snapshot: Snapshot, folder: Path | None, gather: Gather | None, previous: Generation | None
) -> list[StateFile]:
    """Return each client's newest state: here, brought here, or in the previous generation."""
    folders, before_round = [folder] if folder else [], snapshot.round + 1
    if gather is not None:
        files = previous.files(snapshot.run_id) if previous else {}
        known = {_client_of(n): e["round"] for n, e in files.items() if "round" in e}
        gathered = gather(snapshot.run_id, before_round, known)
        folders += gathered
        folders += [previous.path / "clients"] if gathered and previous else []
    return newest_states(folders, snapshot.run_id, before_round)


def _client_of(name: str) -> int:
    """Return the client of a file `clients/client-00017.a`."""
    return int(Path(name).stem.partition("-")[2])


def _build(
    building: Path,
    snapshot: Snapshot,
    facts: Mapping[str, Any],
    found: Sequence[StateFile],
    previous: Generation | None,
) -> tuple[dict[str, Entry], set[str]]:
    """Write all files, the manifest last; return its entries and which were only linked."""
    (building / "clients").mkdir(parents=True)
    files = {name: _entry(building / name) for name in write_snapshot(building, snapshot, facts)}
    old = previous.files(snapshot.run_id) if previous else {}
    stored = in_threads(lambda state: _store(state, building, previous, old), found)
    linked = set()
    for state, (entry, is_linked) in zip(found, stored, strict=True):
        files[_name(state)] = entry
        if is_linked:
            linked.add(_name(state))
    manifest = {
        "format": FORMAT,
        "run_id": snapshot.run_id,
        "round": snapshot.round,
        "files": dict(sorted(files.items())),
    }
    (building / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    for path in (building / MANIFEST, building / "clients", building):
        sync(path)
    return files, linked


def _store(
    state: StateFile, building: Path, previous: Generation | None, old: Mapping[str, Entry]
) -> tuple[Entry, bool]:
    """Link the state from the previous generation if it did not change, or copy it."""
    name = _name(state)
    entry = old.get(name)
    if previous is not None and entry is not None and entry.get("round") == state.round:
        try:
            if (previous.path / name).stat().st_size == entry["bytes"]:
                os.link(previous.path / name, building / name)
                return entry, True
        except OSError:
            pass  # a disk without hard links
    digest = copy_state(state, building / name)
    _pause()
    return {"bytes": state.num_bytes, "sha256": digest, "round": state.round}, False


def _name(state: StateFile) -> str:
    return f"clients/{state.name}"


def _entry(path: Path) -> Entry:
    """Flush a file to the disk and return its entry."""
    sync(path)
    _pause()
    return {"bytes": path.stat().st_size, "sha256": sha256(path)}


def _pause() -> None:
    time.sleep(float(os.environ.get(PAUSE_VARIABLE, "0")))


def _cost(round: int, seconds: float, files: Mapping[str, Entry], linked: set[str]) -> Cost:
    linked_bytes = sum(files[name]["bytes"] for name in linked)
    return Cost(
        round=round,
        seconds=seconds,
        written_bytes=sum(entry["bytes"] for entry in files.values()) - linked_bytes,
        linked_bytes=linked_bytes,
        states_written=sum(name.startswith("clients/") for name in files) - len(linked),
        states_linked=len(linked),
    )


def _failure(folder: Path, round: int, previous: Generation | None, error: Exception) -> str:
    """Say in one line what went wrong and what is left."""
    reason = str(error)
    if isinstance(error, OSError) and error.strerror:
        reason = f"{error.strerror}: {error.filename or folder}"
    left = f"that of round {previous.round} is whole" if previous else "there is none before it"
    return (
        f"the checkpoint of round {round} cannot be written ({reason}); {left}. Make room, or let "
        f"the folder be written to, and go on with: fedsbc resume {folder.parent}"
    )
