"""How much of a GPU's memory one client takes: measured by training one, in a process of its own.

    python -m sims.probe < job.json

The outer process holds a CUDA context and looks at the free memory before and after the inner one
has trained: so the inner one's context counts, as each actor's does.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from fedsbc.errors import RunError

from .resources import Machine

TIMEOUT_S = 300.0
INNER = "--inner"
STEPS = 2
"""The second step needs what the first one left."""


@dataclass(frozen=True)
class Probe:
    """What was found on one GPU.

    Attributes:
        total_bytes: its memory.
        client_bytes: what a process takes that trains clients: context, model, activations.
    """

    total_bytes: int
    client_bytes: int


def probe_node(experiment: str, sample_shape: Sequence[int]) -> Probe:
    """Measure on the first GPU that this process may use.

    Args:
        experiment: the resolved config as JSON.
        sample_shape: (channels, height, width) of the data set.

    Raises:
        RunError: not even one client fits.
    """
    job = json.dumps({"experiment": experiment, "sample_shape": list(sample_shape)})
    ended = subprocess.run(
        [sys.executable, "-m", "sims.probe"],
        input=job,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"engine.device: cuda: one client cannot be trained on the GPU: {reason}")
    return Probe(**json.loads(ended.stdout.splitlines()[-1]))


def measured_machine(machine: Machine, experiment: str, sample_shape: Sequence[int]) -> Machine:
    """Return this machine with its GPUs' memory, and what a client takes of it."""
    probe = probe_node(experiment, sample_shape)
    return replace(machine, gpu_bytes=probe.total_bytes, client_gpu_bytes=probe.client_bytes)


def _outer(job: str) -> Probe:
    import torch

    before, total = torch.cuda.mem_get_info()
    with subprocess.Popen(
        [sys.executable, "-m", "sims.probe", INNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as inner:
        assert inner.stdin is not None, "it was asked for"
        assert inner.stdout is not None, "it was asked for"
        inner.stdin.write(job + "\n")
        inner.stdin.flush()
        is_ready = bool(inner.stdout.readline())  # it trained, and still holds all it took
        after, _ = torch.cuda.mem_get_info()
    if not is_ready:
        sys.exit("the process that trained it failed")
    return Probe(total, max(0, before - after))


def train_once(experiment: str, sample_shape: Sequence[int], device: str) -> None:
    """Train one client on zeros and compress its change, as an actor would."""
    import numpy as np
    import torch

    from clients.compression import compress
    from fedsbc import models
    from fedsbc.config import from_json
    from fedsbc.experiment import upstream_compressor
    from fedsbc.flat_model import FlatModel
    from fedsbc.seeds import Stream, generator
    from fedsbc.training import Trainer

    config = from_json(experiment)
    model = FlatModel(models.build(config.model, config.seed), device)
    few = {"local_steps": STEPS, "local_epochs": None}
    trainer = Trainer(model, config.clients.model_copy(update=few))
    x = torch.zeros(config.clients.batch_size, *sample_shape, device=device)
    y = torch.zeros(len(x), dtype=torch.int64, device=device)
    result = trainer.train(
        np.copy(model.weights),
        np.copy(model.buffers),
        x,
        y,
        seed=0,
        client_id=0,
        round=1,
        first_step=0,
    )
    compressor = upstream_compressor(config)
    residual = model.layout.zeros() if compressor.options.error_feedback else None
    state = compressor.init_state(model.layout)
    compress(
        compressor,
        result.change,
        residual,
        model.layout,
        state,
        generator(0, Stream.COMPRESS_UP, 0, 1),
    )


def main() -> None:
    """Measure what standard input describes, and print it; or be the inner process."""
    job = sys.stdin.readline()
    if sys.argv[1:] == [INNER]:
        train_once(**json.loads(job), device="cuda")
        print("ready", flush=True)
        sys.stdin.readline()
    else:
        print(json.dumps(asdict(_outer(job))))


if __name__ == "__main__":
    main()
