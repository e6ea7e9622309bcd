"""The Flower ServerApp: builds the experiment, runs the strategy, keeps the run folder."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

from fedsbc import data, interrupts, models
from fedsbc.arrays import Vector
from fedsbc.checkpoint import Snapshot, begin_again, plan_resume, read_snapshot
from fedsbc.config import Config, to_yaml
from fedsbc.data import DataSet
from fedsbc.evaluation import evaluate
from fedsbc.experiment import config_of
from fedsbc.flat_model import FlatModel
from fedsbc.layout import Layout
from fedsbc.progress import Progress
from fedsbc.records import Summary
from fedsbc.report import write_report
from fedsbc.run_folder import RunFolder, named_tensors

from .checkpoint import Checkpoints
from .journal import RunJournal
from .strategy import CompressedStrategy, EvaluateFn, Outcome, array_record

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the experiment that the run config names, and write its run folder.

    Raises:
        FedsbcError: the config cannot be used, or the run could not do its job.
    """
    config = config_of(context.run_config)
    torch.set_num_threads(1)  # the model's figures must not depend on the number of cores
    folder, resumed = _start(config, context.run_config)
    folder.write_environment()
    run(grid, config, folder, resumed)


def _start(config: Config, run_config: Mapping[str, object]) -> tuple[RunFolder, Snapshot | None]:
    """Return a new run folder (`out`), or one that a run goes on in and where it goes on from.

    `resume` names the folder of a run that was broken off; `generation`, a checkpoint in `out`
    that was found already, is how `fedsbc resume` says the same. `again` goes on in `out` whether
    there is a generation or not: without one the run plays its rounds anew.
    """
    named, generation = (str(run_config.get(key) or "") for key in ("resume", "generation"))
    out = Path(named or str(run_config.get("out") or "") or Path("runs") / config.name)
    if named:
        plan = plan_resume(RunFolder.open(out), config=config)
        for note in (*plan.notes, f"going on after round {plan.generation.round}"):
            print(note, flush=True)
        generation = str(plan.generation.path)
    if not generation and not run_config.get("again"):
        return RunFolder.create(out, to_yaml(config)), None
    folder = RunFolder.open(out)
    snapshot = read_snapshot(Path(generation)) if generation else None
    folder.cut_back(to_yaml(config), snapshot.records if snapshot else [])
    return folder, snapshot


def run(grid: Grid, config: Config, folder: RunFolder, resumed: Snapshot | None = None) -> Summary:
    """Run an experiment on a Grid; the folder is whole also where the run breaks off.

    Args:
        grid: any Flower Grid.
        config: the experiment.
        folder: where the run's files go.
        resumed: the snapshot to go on from; None: the run begins.
    """
    earlier_s = sum(record.wall_s for record in resumed.records) if resumed else 0.0
    started = time.monotonic() - earlier_s
    model = FlatModel(models.build(config.model, config.seed))
    data_set = data.load(config.data)
    models.check_data(config.model, data_set.sample_shape, data_set.num_classes)
    if config.record.deltas:
        (folder.path / "deltas").mkdir(exist_ok=True)  # engines on this machine write there
    progress = Progress(config.rounds, config.name)
    journal = RunJournal(folder, progress, keep_payloads=config.debug.keep_payloads)
    checkpoints = folder.path / "checkpoint"
    strategy = CompressedStrategy(
        config,
        buffer_names=[t.name for t in model.buffer_layout.tensors],
        journal=journal,
        checkpoints=Checkpoints(checkpoints, config, progress.note),
        resumed=resumed,
        incarnation=begin_again(checkpoints, resumed.round) if resumed else 1,
    )
    try:
        strategy.start(grid, _initial_arrays(model), evaluate_fn=_evaluator(model, data_set))
    except BaseException:
        if strategy.outcome is not None:
            with contextlib.suppress(OSError):  # a full disk must not hide why the run broke off
                wall_s = time.monotonic() - started
                _write(folder, config, strategy.outcome, wall_s, broke_off=True)
        raise
    finally:
        progress.close()
    with interrupts.deferred():  # the last round may be in no checkpoint
        assert strategy.outcome is not None, "a strategy that returns has an outcome"
        summary = _write(folder, config, strategy.outcome, time.monotonic() - started)
        write_report([folder], folder.path / "report.html")
        print(f"run folder: {folder.path.resolve()}")
    return summary


def _initial_arrays(model: FlatModel) -> ArrayRecord:
    tensors = dict(named_tensors(model.layout, model.weights))
    tensors.update(named_tensors(model.buffer_layout, model.buffers))
    return array_record(tensors)


def _evaluator(model: FlatModel, data_set: DataSet) -> EvaluateFn:
    """Return the central evaluation on the test set."""

    def evaluate_round(round: int, arrays: ArrayRecord) -> MetricRecord:
        model.load(_flat(arrays, model.layout), _flat(arrays, model.buffer_layout))
        result = evaluate(model, data_set.test_images, data_set.y_test)
        return MetricRecord({"accuracy": result.accuracy, "loss": result.loss})

    return evaluate_round


def _flat(arrays: ArrayRecord, layout: Layout) -> Vector:
    vector = layout.zeros()
    for spec, view in zip(layout.tensors, layout.split(vector), strict=True):
        view[:] = arrays[spec.name].numpy().reshape(-1)
    return vector


def summarise(
    config: Config, outcome: Outcome, wall_s: float, *, broke_off: bool = False
) -> Summary:
    """Return the summary of a run; one that broke off is not completed, whatever its round."""
    ledger, records = outcome.ledger, outcome.records
    totals = ledger.run_totals()
    accuracies = [r.accuracy for r in records if r.accuracy is not None]
    return Summary(
        name=config.name,
        rounds=len(records),
        final_accuracy=accuracies[-1] if accuracies else None,
        best_accuracy=max(accuracies, default=None),
        up_bits=totals.up.payload_bits,
        down_bits=totals.down.payload_bits,
        up_ratio_dsgd=ledger.up_ratio_dsgd(_local_steps(config, outcome)),
        up_ratio_fedavg=totals.up_ratio_fedavg,
        down_ratio_fedavg=totals.down_ratio_fedavg,
        simulated_s=sum(r.simulated_s for r in records),
        wall_s=wall_s,
        num_params=outcome.server.layout.size,
        model_sha256=outcome.server.model_hash(),
        failures=sum(r.failures for r in records),
        completed=len(records) == config.rounds and not broke_off,
    )


def _local_steps(config: Config, outcome: Outcome) -> float:
    """Return the local steps between two exchanges; their mean where clients do epochs."""
    if config.clients.local_steps is not None:
        return config.clients.local_steps
    participants = sum(record.participants for record in outcome.records)
    return sum(record.num_steps for record in outcome.records) / max(1, participants)


def _write(
    folder: RunFolder, config: Config, outcome: Outcome, wall_s: float, *, broke_off: bool = False
) -> Summary:
    server, summary = outcome.server, summarise(config, outcome, wall_s, broke_off=broke_off)
    folder.write_ledger(outcome.ledger)
    folder.write_model(server.layout, server.weights, server.buffer_layout, server.buffers)
    folder.write_summary(summary)
    return summary
