"""Whether a run can go on, and from where; every refusal is one line that says why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedsbc import config as configs
from fedsbc import environment
from fedsbc.checkpoint.generation import Generation, discard, generations
from fedsbc.checkpoint.snapshot import read_facts
from fedsbc.config import Config
from fedsbc.errors import ConfigError, RunError
from fedsbc.files import write_text
from fedsbc.run_folder import RunFolder

MAY_CHANGE = (
    "rounds",
    "checkpoint.",
    "debug.",
    "engine.actors",
    "engine.address",
    "engine.cpus_per_actor",
    "engine.gpus_per_actor",
    "evaluate.every",
    "failures.abort_after",
    "failures.client_timeout_s",
    "failures.on_client_error",
    "record.",
)
"""Keys, or beginnings of keys, that change no byte of a round."""

BYTES_DEPEND_ON = ("fedsbc", "torch", "numpy", "flwr", "flwr-datasets")
"""Packages whose versions must be the same: partition, training, payloads, envelopes."""


@dataclass(frozen=True)
class Plan:
    """How a run goes on.

    Attributes:
        config: the run's, with the number of rounds that is asked for now.
        generation: the newest whole one.
        notes: what the user should know, one line each.
    """

    config: Config
    generation: Generation
    notes: tuple[str, ...] = ()


def plan_resume(
    folder: RunFolder,
    rounds: int | None = None,
    *,
    config: Config | None = None,
    force: bool = False,
) -> Plan:
    """Find out from where a run can go on.

    Args:
        folder: the run's.
        rounds: how many rounds it shall have in all; the config's if None.
        config: the one that it is asked to go on with; the folder's own if None.
        force: go on although versions differ on which the bytes depend.

    Raises:
        ConfigError: the config or the model is not the one of the checkpoint, or a version
            differs and `force` is not given.
        RunError: there is nothing to resume, or every generation is damaged.
    """
    path = folder.path
    if config is None:
        config = configs.load(path / "config.yaml", [] if rounds is None else [f"rounds={rounds}"])
    found = generations(path / "checkpoint")
    if not found:
        raise _no_checkpoint(folder, config)
    generation, notes = newest_whole(found)
    facts = read_facts(generation.path)
    is_cut = generation.round == config.rounds < facts["config"]["rounds"]
    has_ended = _has_ended(folder, config)
    if generation.round > config.rounds or is_cut or has_ended:
        done = folder.summary().rounds if has_ended else generation.round
        raise RunError(
            f"{path}: nothing to resume: {done} rounds are done, and {config.rounds} are asked "
            f"for; for more of them: fedsbc resume {path} --rounds N"
        )
    _check_config(path, facts["config"], config)
    _check_layouts(generation, facts["layouts"], config)
    differing = _differing_versions(facts["environment"], config)
    if differing and not force:
        raise ConfigError(
            f"{path}: the bytes may differ from here on: {differing}; install the same, or go on "
            f"all the same: fedsbc resume {path} --force"
        )
    if differing:
        notes = (*notes, f"going on by --force although {differing}")
    return Plan(config, generation, notes)


def _no_checkpoint(folder: RunFolder, config: Config) -> RunError:
    """Return the error for a run without a checkpoint, which may have ended well."""
    path, every = folder.path, config.checkpoint.every or "null"
    if folder.has_summary() and folder.summary().completed:
        return RunError(
            f"{path}: nothing to resume: the run has ended and is whole; it can have no more "
            f"rounds, because it kept no checkpoint (checkpoint.every: {every})"
        )
    return RunError(
        f"{path}: nothing to resume: no checkpoint was saved (checkpoint.every: {every}); remove "
        "the folder and run it again: fedsbc run"
    )


def _has_ended(folder: RunFolder, config: Config) -> bool:
    """Whether all rounds are done and the outcome is written; a kill may come between the two."""
    if not folder.has_summary():
        return False
    summary = folder.summary()
    return summary.completed and summary.rounds >= config.rounds


def newest_whole(found: list[Generation]) -> tuple[Generation, tuple[str, ...]]:
    """Return the newest generation that is whole, and notes where it is not the newest of all.

    Args:
        found: generations, newest first; at least one.

    Raises:
        RunError: every one is damaged.
    """
    damages: list[str] = []
    for generation in found:
        damage = generation.damage()
        if damage is None:
            notes = [f"{d}; going on from round {generation.round} instead" for d in damages]
            return generation, tuple(notes)
        damages.append(damage)
    raise RunError(f"nothing to resume: every checkpoint is damaged: {'; '.join(damages)}")


def _check_config(path: Path, saved: Mapping[str, Any], config: Config) -> None:
    before, now = dict(_flat(saved)), dict(_flat(config.model_dump(mode="json")))
    changed = [
        f"`{key}` is {now.get(key)!r}, but was {before.get(key)!r}"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key) and not key.startswith(MAY_CHANGE)
    ]
    if changed:
        raise ConfigError(
            f"{path / 'config.yaml'}: {'; '.join(changed)}: a run goes on with the config that it "
            "began with; for another one: fedsbc run"
        )


def _flat(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a config by their dotted keys."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield above + key, value


def _check_layouts(generation: Generation, saved: list[str], config: Config) -> None:
    """Check that the code still builds the model that the checkpoint holds."""
    from fedsbc import models
    from fedsbc.flat_model import FlatModel

    model = FlatModel(models.build(config.model, config.seed))
    now = [model.layout.hash, model.buffer_layout.hash]
    if now != list(saved):
        raise ConfigError(
            f"{generation.path}: its model has another layout (parameters {saved[0]}, buffers "
            f"{saved[1]}) than `model: {config.model.name}` has now ({now[0]}, {now[1]})"
        )


def _differing_versions(saved: Mapping[str, Any], config: Config) -> str:
    """Return what is another version, processor or GPU than the checkpoint's, as text."""
    now = environment.describe()
    differing = [
        f"{name} is {now['packages'].get(name)}, but was {saved['packages'].get(name)}"
        for name in BYTES_DEPEND_ON
        if now["packages"].get(name) != saved["packages"].get(name)
    ]
    if now["cpu"] != saved["cpu"]:
        differing.append(f"the processor is {now['cpu']}, but was {saved['cpu']}")
    gpus_now, gpus_before = now["gpus"][:1], saved.get("gpus", [])[:1]
    may_use_gpu = config.engine.gpus_per_actor > 0 and config.engine.device != "cpu"
    if may_use_gpu and gpus_now != gpus_before:
        differing.append(f"the GPU is {_named(gpus_now)}, but was {_named(gpus_before)}")
    return "; ".join(differing)


def _named(gpus: list[str]) -> str:
    return gpus[0] if gpus else "none"


def begin_again(checkpoints: Path, round: int) -> int:
    """Make ready for going on after a round: later generations go; return the incarnation."""
    discard(generation for generation in generations(checkpoints) if generation.round > round)
    return next_incarnation(checkpoints)


def next_incarnation(checkpoints: Path) -> int:
    """Count one more start of a run's server, on the disk, and return its number."""
    path = checkpoints / "incarnation"
    text = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    number = 1 + (int(text) if text.isdigit() else 1)
    write_text(path, f"{number}\n")
    return number
