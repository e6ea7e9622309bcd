"""Run one experiment on the Ray engine: start actors, call the ServerApp, leave nothing behind."""

import itertools
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from fedsbc import data, models
from fedsbc.checkpoint import generations, newest_whole
from fedsbc.config import Config, to_json
from fedsbc.data import DataSet, partition
from fedsbc.data.mapped import IMAGES, LABELS, write_train
from fedsbc.errors import ConfigError, StatesLost
from fedsbc.partition_files import PARTITION, write_parts
from fedsbc.records import Summary
from fedsbc.run_folder import RunFolder

from . import signals
from .engine import Engine, engine_for
from .scratch import scratch_folder

if TYPE_CHECKING:
    from .actor import NodeConfig
    from .fleet import Fleet


def run(config: Config, out: Path, generation: Path | None = None) -> Summary:
    """Run an experiment on Ray actors and return its summary.

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
    data_set = data.load(config.data)
    models.check_data(config.model, data_set.sample_shape, data_set.num_classes)
    partition.check_counts(config.clients.count, len(data_set.y_train))
    engine = engine_for(config, data_set.sample_shape)
    # Ray and its actors start while this process deals the data and imports what a server needs.
    with (
        signals.raising(),
        scratch_folder(out) as scratch,
        ThreadPoolExecutor(1) as background,
    ):
        prepared = background.submit(_prepare, config, data_set, scratch)
        del data_set
        with engine.running(out, scratch):
            return _play(config, out, generation, engine, prepared)


def _prepare(config: Config, data_set: DataSet, scratch: Path) -> None:
    """Write what the actors map: the train set and its partition."""
    parts = partition.split(
        config.data.partition, data_set.y_train, config.clients.count, config.seed
    )
    write_parts(scratch / PARTITION, parts)
    write_train(scratch, data_set)


def _play(
    config: Config, out: Path, generation: Path | None, engine: Engine, prepared: "Future[None]"
) -> Summary:
    """Serve the run; where a node is lost, go back to the last checkpoint and serve it again."""
    run_config: NodeConfig = {"experiment": to_json(config), "out": str(out)}
    if generation is not None:
        run_config["generation"] = str(generation)
    for attempt in itertools.count(1):
        try:
            fleet = engine.fleet(run_config)
            fleet.begin(str(attempt), generation)
            _serve(config, fleet, run_config, prepared)
        except StatesLost as lost:
            if (out / "config.yaml").exists():  # otherwise it was lost before the run began
                generation = _last_checkpoint(out)
                run_config |= {"generation": str(generation or ""), "again": True}
            _say_where(lost, generation, engine.num_nodes_left())
        else:
            break
    return RunFolder.open(out).summary()


def _last_checkpoint(out: Path) -> Path | None:
    """Return the checkpoint to go back to, None for the beginning.

    Raises:
        RunError: there are some, all damaged.
    """
    found = generations(out / "checkpoint")
    return newest_whole(found)[0].path if found else None


def _say_where(lost: StatesLost, generation: Path | None, num_nodes: int) -> None:
    """Say in one line what happened and where the run goes on."""
    where = "the beginning (there is no checkpoint)"
    if generation is not None:
        where = f"the checkpoint of round {int(generation.name.partition('-')[2])}"
    nodes = "1 node that is" if num_nodes == 1 else f"{num_nodes} nodes that are"
    print(f"{lost}: going back to {where}, on the {nodes} left", file=sys.stderr, flush=True)


def _serve(
    config: Config, fleet: "Fleet", run_config: "NodeConfig", prepared: "Future[None]"
) -> None:
    """Start the actors and call the ServerApp on a Grid of them once the data are there."""
    from flwr.app import Context, RecordDict

    from .flower_private import RUN_ID, SERVER_NODE_ID, identify_server
    from .grid import RayGrid
    from .pool import ActorPool

    identify_server()
    pool = ActorPool(
        fleet.seats(),
        config.failures.client_timeout_s,
        on_replaced=lambda reason: print(f"actor replaced: {reason}", file=sys.stderr),
        check_engine=fleet.check,
    )
    try:
        from strategies.app import app  # while the actors import the same

        prepared.result()
        fleet.spread([PARTITION, IMAGES, LABELS])
        grid = RayGrid(pool, fleet, config.clients.count)
        app(grid, Context(RUN_ID, SERVER_NODE_ID, {}, RecordDict(), dict(run_config)))
    finally:
        pool.close()
