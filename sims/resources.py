"""How many actors fit where, with the arithmetic shown, and on which device they train."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fedsbc.config import Config
from fedsbc.errors import ConfigError

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")

MEMORY_PER_ACTOR_BYTES = 600 * 2**20
"""A Python process with torch, Flower and a small model; what it shares is not counted."""

TRAINING_SHARE = 0.75
"""Of a GPU's memory, for training; most of the rest is for data that are kept there."""

MAX_SHOWN = 4
"""Machines whose arithmetic is shown."""

Device = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Machine:
    """What there is to share out.

    Attributes:
        cores: CPU cores that may be used.
        memory_bytes: memory of the machine, limits of its container included where known.
        gpus: number of GPUs.
        gpu_bytes: memory of one of them, the smallest.
        client_gpu_bytes: what one actor takes of it, measured; 0: not measured.
        name: for people.
    """

    cores: float
    memory_bytes: int
    gpus: float
    gpu_bytes: int = 0
    client_gpu_bytes: int = 0
    name: str = "here"


@dataclass(frozen=True)
class Limit:
    """How many actors one resource allows.

    Attributes:
        what: there is.
        have: how much of it.
        each: what an actor takes.
        key: where that comes from.
        fits: how many actors that makes.
    """

    what: str
    have: float
    each: float
    key: str
    fits: int


def this_machine(config: Config) -> Machine:
    """Return what this machine has; GPUs are counted only where actors may use one."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    wants_gpu = config.engine.gpus_per_actor and config.engine.device != "cpu"
    num_gpus = _num_gpus() if wants_gpu else 0  # torch takes a second to load
    return Machine(len(os.sched_getaffinity(0)), _less(memory, CGROUP_LIMIT), num_gpus)


def _less(memory_bytes: int, limit: Path) -> int:
    """Return the memory of the machine, or a container's limit where that is lower."""
    try:
        return min(memory_bytes, int(limit.read_text()))
    except (OSError, ValueError):  # no such file, or "max"
        return memory_bytes


def _num_gpus() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def device_of(config: Config, machines: Sequence[Machine]) -> Device:
    """Return where models are trained: on GPUs where actors hold a share of one and there is one.

    Raises:
        ConfigError: `device: cuda` cannot be had.
    """
    engine = config.engine
    if engine.device == "cuda" and not engine.gpus_per_actor:
        raise ConfigError(
            "engine.device: cuda, but engine.gpus_per_actor is 0: actors hold no GPU; set a share "
            "such as engine.gpus_per_actor: 0.25, or engine.device: auto"
        )
    has_gpu = any(machine.gpus for machine in machines)
    if engine.device == "cuda" and not has_gpu:
        where = "here" if len(machines) == 1 else f"on any of {len(machines)} nodes"
        raise ConfigError(
            f"engine.device: cuda, but there is no CUDA device {where}; use engine.device: auto, "
            "which takes the CPU then"
        )
    return "cuda" if has_gpu and engine.gpus_per_actor and engine.device != "cpu" else "cpu"


def limits(config: Config, machine: Machine, device: Device) -> list[Limit]:
    """Return what bounds the number of actors on a machine."""
    cpus, share = config.engine.cpus_per_actor, config.engine.gpus_per_actor
    memory, each = machine.memory_bytes / 2**30, MEMORY_PER_ACTOR_BYTES / 2**30
    found = [
        Limit(
            "CPU cores", machine.cores, cpus, "engine.cpus_per_actor", _whole(machine.cores / cpus)
        ),
        Limit("GiB of memory", memory, each, "an actor needs", _whole(memory / each)),
    ]
    if device == "cuda":
        gpus = machine.gpus
        fits = _whole(gpus) * _whole(1 / share) if share < 1 else _whole(gpus / share)
        found.append(Limit("GPUs", gpus, share, "engine.gpus_per_actor", fits))
        if machine.client_gpu_bytes:
            have = TRAINING_SHARE * machine.gpu_bytes / 2**30
            need = machine.client_gpu_bytes / 2**30
            on_all = _whole(have / need) * _whole(gpus)
            found.append(
                Limit(f"GiB of memory on each GPU ({gpus:g})", have, need, "measured", on_all)
            )
    return found


def _whole(quotient: float) -> int:
    return int(quotient + 1e-9)


def fit_actors(
    config: Config, machines: Sequence[Machine], device: Device, *, at_most: bool = False
) -> list[int]:
    """Return the number of actors to start on each machine.

    `auto` takes as many as fit, at most one per client of a round. Each actor trains on one
    torch thread.

    Args:
        config: the experiment.
        machines: at least one.
        device: what its actors train on.
        at_most: if more are asked for than fit, take what fits.

    Raises:
        ConfigError: more are asked for than fit; the message shows the arithmetic.
    """
    tightest = [min(limits(config, m, device), key=lambda limit: limit.fits) for m in machines]
    fits = [limit.fits for limit in tightest]
    total, asked = sum(fits), config.engine.actors
    if isinstance(asked, str):
        if not total:
            limit, where = tightest[0], machines[0].name
            raise ConfigError(
                f"engine: not one actor fits: {limit.have:g} {limit.what} {where}, {limit.key}: "
                f"{limit.each:g}"
            )
        return share_out(min(total, config.cohort_size), fits)
    wanted: int = min(asked, total) if at_most and total else asked
    if wanted > total:
        terms = [
            f"{limit.have:g} {limit.what} {machine.name} / {limit.each:g} each ({limit.key}) = "
            f"{limit.fits}"
            for limit, machine in zip(tightest, machines, strict=True)
        ]
        more = f"; and {len(terms) - MAX_SHOWN} nodes more" if len(terms) > MAX_SHOWN else ""
        lower = "engine.cpus_per_actor" if "CPU" in tightest[0].what else "the load"
        raise ConfigError(
            f"engine.actors: {asked} asked for, but {total} fit: "
            f"{'; '.join(terms[:MAX_SHOWN])}{more}; lower engine.actors or {lower}"
        )
    return share_out(wanted, fits)


def share_out(count: int, fits: Sequence[int]) -> list[int]:
    """Return how many of `count` actors each machine gets, in proportion to what fits.

    >>> share_out(4, [2, 6])
    [1, 3]
    """
    given = [0] * len(fits)
    for _ in range(count):
        free = [i for i, fit in enumerate(fits) if given[i] < fit]
        given[min(free, key=lambda i: ((given[i] + 1) / fits[i], i))] += 1
    return given


def describe_fit(
    config: Config, machines: Sequence[Machine], device: Device, actors: Sequence[int]
) -> str:
    """Return the line that says how many actors there are, and why."""
    num_actors, engine = sum(actors), config.engine
    asked = "auto" if engine.actors == "auto" else "as asked"
    if len(machines) == 1:
        parts = [
            f"{limit.have:.4g} {limit.what} / {limit.each:.3g}"
            for limit in limits(config, machines[0], device)
        ]
    else:
        parts = [f"{n} {m.name}" for n, m in zip(actors, machines, strict=True)][:MAX_SHOWN]
        parts += [f"{len(machines)} nodes"] * (len(machines) > MAX_SHOWN)
    parts.append(f"{config.cohort_size} clients a round")
    on = "on GPUs" if device == "cuda" else "on CPUs"
    if device == "cpu" and engine.gpus_per_actor:
        reason = "as asked" if engine.device == "cpu" else "there is no GPU"
        on = f"on CPUs ({reason}: engine.gpus_per_actor counts for nothing)"
    plural = "" if num_actors == 1 else "s"
    return f"{num_actors} actor{plural} {on} ({asked}; {', '.join(parts)})"
