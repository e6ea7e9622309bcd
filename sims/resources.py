"""How many actors fit on this machine, with the arithmetic shown."""

import os
from dataclasses import dataclass
from pathlib import Path

from fedsbc.config import Config
from fedsbc.errors import ConfigError

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")

MEMORY_PER_ACTOR_BYTES = 600 * 2**20
"""A Python process with torch, Flower and a small model; what it shares is not counted."""


@dataclass(frozen=True)
class Machine:
    """What there is to share out.

    Attributes:
        cores: CPU cores that this process may use.
        memory_bytes: memory of the machine, limits of its container included where known.
        gpus: number of GPUs.
    """

    cores: int
    memory_bytes: int
    gpus: int


def this_machine(config: Config) -> Machine:
    """Return what this machine has; GPUs are counted only where actors ask for a share of one."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    num_gpus = _num_gpus() if config.engine.gpus_per_actor else 0  # torch takes a second to load
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


def fit_actors(config: Config, machine: Machine) -> int:
    """Return the number of actors to start.

    `auto` takes as many as fit, at most one per client of a round. Each actor trains on one
    torch thread.

    Raises:
        ConfigError: more are asked for than fit; the message shows the arithmetic.
    """
    engine = config.engine
    limits = {
        "CPU cores": (machine.cores, engine.cpus_per_actor, "engine.cpus_per_actor"),
        "GiB of memory": (
            machine.memory_bytes / 2**30,
            MEMORY_PER_ACTOR_BYTES / 2**30,
            "an actor needs",
        ),
    }
    if engine.gpus_per_actor:
        limits["GPUs"] = (machine.gpus, engine.gpus_per_actor, "engine.gpus_per_actor")
    fits = {what: int(have / each + 1e-9) for what, (have, each, _) in limits.items()}
    tightest = min(fits, key=lambda what: fits[what])
    have, each, name = limits[tightest]
    if engine.actors == "auto":
        if fits[tightest] < 1:
            raise ConfigError(
                f"engine: not one actor fits: {have:g} {tightest} here, {name}: {each:g}"
            )
        return min(fits[tightest], config.cohort_size)
    if engine.actors > fits[tightest]:
        raise ConfigError(
            f"engine.actors: {engine.actors} asked for, but {fits[tightest]} fit: "
            f"{have:g} {tightest} here / {each:g} each ({name}) = {fits[tightest]}; "
            f"lower engine.actors or {'engine.cpus_per_actor' if 'CPU' in tightest else 'the load'}"
        )
    return engine.actors


def describe_fit(config: Config, num_actors: int) -> str:
    """Return the line that says how many actors there are, and why."""
    machine, engine = this_machine(config), config.engine
    parts = [
        f"{machine.cores} CPU cores / {engine.cpus_per_actor:g}",
        f"{machine.memory_bytes / 2**30:.1f} GiB / {MEMORY_PER_ACTOR_BYTES / 2**30:.1f}",
        f"{config.cohort_size} clients a round",
    ]
    if engine.gpus_per_actor:
        parts.insert(2, f"{machine.gpus} GPUs / {engine.gpus_per_actor:g}")
    asked = "auto" if engine.actors == "auto" else "as asked"
    plural = "" if num_actors == 1 else "s"
    return f"{num_actors} actor{plural} ({asked}; {', '.join(parts)})"
