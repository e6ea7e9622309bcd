"""Tables in Markdown and a plot of what `tests.benchmarks.scaling` measured.

python -m tests.benchmarks.scaling_page CLIENTS.json PARTICIPANTS.json docs/scaling.svg
"""

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

COLUMNS = (
    "s a round",
    "rounds per second",
    "ms a participant",
    "ms of CPU a participant",
    "of it the driver's",
    "s in all",
)


def table(rows: list[dict[str, Any]], key: str) -> list[str]:
    """Return a series as lines of a table; of a round the median and the range."""
    lines = [f"| {' | '.join((key, *COLUMNS))} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for row in rows:
        times, cohort = row["round_s"][1:], row["participants"]
        middle = median(times)
        cells = (
            f"{row[key]:,}",
            f"{middle:.2f} [{min(times):.2f}, {max(times):.2f}]",
            f"{1 / middle:.2f}",
            f"{1000 * middle / cohort:.1f}",
            f"{1000 * row['cpu_s'] / cohort:.1f}",
            f"{1000 * row['driver_cpu_s'] / cohort:.2f}",
            f"{row['whole_s']:.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def plot(clients: Path, participants: Path, out: Path) -> None:
    """Draw both series."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "fedsbc"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, path, key in zip(
        axes, (clients, participants), ("clients", "participants"), strict=True
    ):
        rows = json.loads(path.read_text())["rows"]
        x = [row[key] for row in rows]
        times = [row["round_s"][1:] for row in rows]
        middle = [median(t) for t in times]
        low = [m - min(t) for m, t in zip(middle, times, strict=True)]
        high = [max(t) - m for m, t in zip(middle, times, strict=True)]
        if key == "clients":
            middle = [1 / m for m in middle]
            rates = [[1 / s for s in t] for t in times]
            low = [m - min(r) for m, r in zip(middle, rates, strict=True)]
            high = [max(r) - m for m, r in zip(middle, rates, strict=True)]
        axis.errorbar(x, middle, [low, high], marker="o", capsize=3, label="measured")
        axis.set_xscale("log")
        axis.set_xticks(x, [str(value) for value in x])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        if key == "clients":
            axis.set(xlabel="clients (40 in a round)", ylabel="rounds per second")
            axis.set_ylim(0, 1.1 * max(map(max, rates)))
        else:
            each = middle[-1] / x[-1]
            line = [each * value for value in x]
            axis.plot(x, line, "--", color="grey", label=f"{1000 * each:.1f} ms a participant")
            axis.set_yscale("log")
            axis.set(xlabel="participants in a round (400 clients)", ylabel="seconds per round")
        axis.legend(frameon=False)
    figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None, dpi=110)


def main(clients: Path, participants: Path, out: Path) -> None:
    """Print both tables and draw both series."""
    for path, key in ((clients, "clients"), (participants, "participants")):
        print("\n".join(table(json.loads(path.read_text())["rows"], key)), end="\n\n")
    plot(clients, participants, out)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
