"""`fedsbc bench engine`: rounds on our actors, beside a bare loop, Flower's runtime and pfl."""

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsbc.errors import ConfigError, RunError
from sims import signals

if TYPE_CHECKING:
    from sims.bench.jobs import Job
    from sims.bench.watch import Measured

JOBS = ("A1", "A2", "A3")
RIVALS = ("bare", "flower", "pfl")
COLUMNS = f"{'job':<5}{'who':<8}{'s/round':>9}{'interval':>19}{'start-up s':>12}{'peak GB':>9}"


def engine_command(
    job: Annotated[
        list[str] | None, typer.Option(help="A1, A2, A3; may be repeated [all].")
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option(help="bare, flower, pfl; may be repeated [all].")
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each contender, alternated.")] = 5,
    rounds: Annotated[
        int | None, typer.Option(min=2, help="Of each run; the first is start-up [16, 6, 200].")
    ] = None,
    clients: Annotated[int, typer.Option(min=10, help="Fewer only to try the command.")] = 400,
    pfl_python: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Python with pfl; default: install it for this call."),
    ] = None,
    json_path: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures there too.")
    ] = None,
) -> None:
    """Time whole runs side by side: seconds per round, start-up, peak memory.

    A1: lenet5-caffe, 40 of 400 clients a round. A2: all 400. A3: a perceptron 784-64-10, 40 a
    round. MNIST-shaped data, 10 local steps of batch 10, two workers with one thread each.
    `sbc` (1 %) and `fedavg` are `fedsbc run`; everything that they do is in their time.
    """
    from sims.bench.jobs import jobs

    known = jobs(clients, rounds)
    chosen = [known[name] for name in _checked("--job", job, JOBS)]
    rivals = _checked("--against", against, RIVALS)
    with signals.raising():  # so that what was started ends with it
        report = _run(chosen, rivals, pairs, pfl_python)
    if json_path:
        _write(json_path, pairs, report)


def _checked(option: str, given: list[str] | None, known: tuple[str, ...]) -> list[str]:
    for name in given or ():
        if name not in known:
            raise ConfigError(f"{option}: expected one of {', '.join(known)}, got {name!r}")
    return [name for name in known if not given or name in given]


def _run(
    jobs: "list[Job]", rivals: list[str], pairs: int, pfl_python: Path | None
) -> "dict[str, dict[str, list[Measured]]]":
    """Run every contender on every job, print as results come, and return them."""
    import tempfile

    from sims.bench.contenders import contenders
    from sims.bench.jobs import write_data

    with tempfile.TemporaryDirectory(prefix="fsb-") as name:
        folder = Path(name).resolve()
        write_data(folder / "data.npz")
        table = contenders(rivals, _pfl(rivals, pfl_python, folder))
        typer.echo(COLUMNS)
        report = {}
        for job in jobs:
            report[job.name] = _alternate(job, table, pairs, folder / "data.npz")
            for line in _lines(job.name, report[job.name]):
                typer.echo(line)
        return report


def _pfl(rivals: list[str], python: Path | None, folder: Path) -> Path | None:
    """Return the Python that has pfl; without one, say so."""
    from sims.bench.contenders import make_pfl_environment

    if python is not None or "pfl" not in rivals:
        return python
    try:
        return make_pfl_environment(folder)
    except RunError as error:
        typer.echo(f"pfl is left out: {error}")
        return None


def _alternate(
    job: "Job", table: dict[str, Any], pairs: int, data: Path
) -> "dict[str, list[Measured]]":
    """Return the runs of each contender; who fails once is left out of the job, and it is said."""
    from sims.bench.contenders import place

    runs: dict[str, list[Measured]] = {name: [] for name in table}
    for _ in range(pairs):
        for name in list(runs):
            try:
                with place(data) as where:
                    runs[name].append(table[name](job, where))
            except RunError as error:
                typer.echo(f"{job.name}: {name} is left out: {error}")
                del runs[name]
    return runs


def _lines(job: str, runs: "dict[str, list[Measured]]") -> list[str]:
    """Return the table of a job: medians with their range, then ratios pair by pair."""
    lines = []
    for name, measured in runs.items():
        times = [m.round_s for m in measured]
        interval = f"[{min(times):.4f}, {max(times):.4f}]"
        lines.append(
            f"{job:<5}{name:<8}{median(times):>9.4f}{interval:>19}"
            f"{median(m.startup_s for m in measured):>12.2f}"
            f"{max(m.peak_bytes for m in measured) / 1e9:>9.2f}"
        )
    lines += [
        f"{job:<5}{row['ours']} / {row['rival']}: {row['median']:.3f} "
        f"[{row['lowest']:.3f}, {row['highest']:.3f}]"
        for row in ratios(runs)
    ]
    return lines


def ratios(runs: "dict[str, list[Measured]]") -> list[dict[str, Any]]:
    """Return seconds per round of ours over a rival's: median and range of the pairs."""
    rows = []
    for mine in [name for name in runs if name not in RIVALS]:
        for rival in [name for name in runs if name in RIVALS]:
            pairs = zip(runs[mine], runs[rival], strict=True)
            quotients = [a.round_s / b.round_s for a, b in pairs]
            rows.append(
                {
                    "ours": mine,
                    "rival": rival,
                    "median": median(quotients),
                    "lowest": min(quotients),
                    "highest": max(quotients),
                }
            )
    return rows


def _write(path: Path, pairs: int, report: "dict[str, dict[str, list[Measured]]]") -> None:
    import json
    from dataclasses import asdict

    from fedsbc.environment import describe

    jobs = {
        name: {
            "runs": {who: [asdict(m) for m in measured] for who, measured in runs.items()},
            "ratios": ratios(runs),
        }
        for name, runs in report.items()
    }
    figures = {"environment": describe(), "pairs": pairs, "jobs": jobs}
    path.write_text(json.dumps(figures, indent=2) + "\n")
