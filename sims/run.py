"""Run one experiment on the Ray engine: start actors, call the ServerApp, leave nothing behind."""

import contextlib
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fedsbc import data, models
from fedsbc.checkpoint import restore_states
from fedsbc.config import Config, to_json
from fedsbc.data import DataSet, partition
from fedsbc.data.mapped import write_train
from fedsbc.errors import ConfigError
from fedsbc.partition_files import write_parts
from fedsbc.records import Summary
from fedsbc.run_folder import RunFolder

from . import signals
from .resources import describe_fit, fit_actors, this_machine
from .scratch import RAY, scratch_folder

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "OMP_NUM_THREADS": "1",
    # Large blocks stay in the process: a training step asks for the same ones again and again.
    "MALLOC_MMAP_THRESHOLD_": "268435456",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
}
"""For the actors, which inherit it; what the user has set is left alone."""

STATE = "state"
"""Folder of the scratch folder for client states and the shared weights."""

MARK = "FEDSBC_RAY"
"""Environment variable by which Ray's processes are known."""

OBJECT_STORE_BYTES = 256 * 2**20
"""Replies pass through it; weights and states do not."""


def run(config: Config, out: Path, generation: Path | None = None) -> Summary:
    """Run an experiment on Ray actors of this machine and return its summary.

    Args:
        config: the experiment.
        out: the run folder; it exists only where a run goes on.
        generation: the checkpoint to go on from; None: the run begins.

    Raises:
        ConfigError: it cannot be run here as asked; nothing was started.
        RunError: it could not do its job.
        KeyboardInterrupt: Ctrl-C or SIGTERM; the last whole round is saved.
    """
    if config.engine.kind != "ray":
        raise ConfigError(
            f"engine.kind: {config.engine.kind!r} is not started by `fedsbc run` or `resume`; use "
            "`flwr run .` for Flower's own runtime, `fedsbc deploy` for devices, and `resume` in "
            "the run config to go on with a run on devices (docs/deployment.md)"
        )
    num_actors = fit_actors(config, this_machine(config))
    data_set = data.load(config.data)
    models.check_data(config.model, data_set.sample_shape, data_set.num_classes)
    partition.check_counts(config.clients.count, len(data_set.y_train))
    print(describe_fit(config, num_actors), file=sys.stderr)
    # Ray and its actors start while this process deals the data and imports what a server needs.
    with (
        signals.raising(),
        scratch_folder(out) as scratch,
        ThreadPoolExecutor(1) as background,
    ):
        prepared = background.submit(_prepare, config, data_set, scratch)
        del data_set
        if generation is not None:
            restore_states(generation, scratch / STATE)
        with _ray(num_actors, config, scratch):
            return _serve(config, out, scratch, num_actors, generation, prepared)


def _prepare(config: Config, data_set: DataSet, scratch: Path) -> None:
    """Write what the actors map: the train set and its partition."""
    parts = partition.split(
        config.data.partition, data_set.y_train, config.clients.count, config.seed
    )
    write_parts(scratch / "partition.npy", parts)
    write_train(scratch, data_set)


@contextlib.contextmanager
def _ray(num_actors: int, config: Config, scratch: Path) -> Iterator[None]:
    """Start Ray for this run alone, and stop it; its sockets need a short path."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    root = str(Path(__file__).parent.parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    import ray

    from .ray_private import stop

    folder = tempfile.mkdtemp(prefix="fedsbc-")
    os.environ[MARK] = folder
    try:
        (scratch.parent / RAY).symlink_to(folder)
        with signals.kept():
            ray.init(
                num_cpus=max(1, math.ceil(num_actors * config.engine.cpus_per_actor)),
                object_store_memory=OBJECT_STORE_BYTES,
                include_dashboard=False,
                configure_logging=False,
                log_to_driver=False,
                _temp_dir=folder,
            )
        signals.check()
        yield
    finally:
        stop(f"{MARK}={folder}")
        del os.environ[MARK]
        shutil.rmtree(folder, ignore_errors=True)


def _serve(
    config: Config,
    out: Path,
    scratch: Path,
    num_actors: int,
    generation: Path | None,
    prepared: "Future[None]",
) -> Summary:
    """Start the actors and call the ServerApp on a Grid of them once the data are there."""
    import ray
    from flwr.app import Context, RecordDict

    from .actor import ClientActor, NodeConfig
    from .flower_private import RUN_ID, SERVER_NODE_ID, identify_server
    from .grid import RayGrid
    from .pool import ActorPool
    from .ray_private import check_head

    identify_server()
    run_config: NodeConfig = {"experiment": to_json(config), "out": str(out)}
    if generation is not None:
        run_config["generation"] = str(generation)
    node_config: dict[str, Any] = {
        "partition-file": str(scratch / "partition.npy"),
        "data-dir": str(scratch),
        "state-dir": str(scratch / STATE),
    }
    if config.record.deltas:
        node_config["record-dir"] = str(out.resolve() / "deltas")
    engine = config.engine
    remote = ray.remote(num_cpus=engine.cpus_per_actor, num_gpus=engine.gpus_per_actor)(ClientActor)
    pool = ActorPool(
        lambda counter: remote.remote(run_config, node_config, counter),
        num_actors,
        scratch,
        config.failures.client_timeout_s,
        on_replaced=lambda reason: print(f"actor replaced: {reason}", file=sys.stderr),
        check_engine=check_head,
    )
    grid = RayGrid(pool, num_actors, config.clients.count, scratch / STATE)
    try:
        from strategies.app import app  # while the actors import the same

        prepared.result()
        app(grid, Context(RUN_ID, SERVER_NODE_ID, {}, RecordDict(), run_config))
    finally:
        pool.close()
    return RunFolder.open(out).summary()
