"""The sections of the report that are words and tables."""

import math
from collections.abc import Sequence

from fedsbc.ledger import Direction
from fedsbc.ledger_row import DIRECTIONS
from fedsbc.report import html
from fedsbc.report.runs import Run, differing_settings, shared_settings
from fedsbc.report.summary_table import cells, columns
from fedsbc.units import MISSING, human_bits, human_seconds

_SIDE = {"up": "Up: from clients to the server", "down": "Down: from the server to clients"}


def lead(runs: Sequence[Run]) -> str:
    """Return what the runs have in common, in one line."""
    shared = shared_settings(runs)
    sizes = {run.summary.num_params for run in runs if run.summary}
    parts = [f"{len(runs)} runs" if len(runs) > 1 else ""]
    parts += [str(shared.get("data.name", "")), str(shared.get("model.name", ""))]
    parts += [f"{size:,} parameters" for size in sizes if len(sizes) == 1]
    if "clients.count" in shared:
        parts.append(f"{shared['clients.count']} clients")
    if isinstance(shared.get("participants"), int):
        parts.append(f"{shared['participants']} of them each round")
    elif isinstance(shared.get("participation"), float):
        parts.append(f"{100 * shared['participation']:g}% of them each round")
    for key in ("local_steps", "local_epochs"):
        if shared.get(f"clients.{key}"):
            parts.append(f"{shared[f'clients.{key}']} {key.replace('_', ' ')}")
    return html.paragraph(" · ".join(part for part in parts if part), "lead")


def outcome(runs: Sequence[Run]) -> str:
    """Return the table of runs and what its columns mean."""
    wanted = columns(runs)
    rows = [
        [html.run_name(index, run), *map(html.text, cells(run, wanted))]
        for index, run in enumerate(runs)
    ]
    note = (
        "Bits are payload bits as they were encoded, summed over all clients and all rounds. "
        "“vs FedAvg ×N”: N times fewer bits than a dense float32 model at every exchange "
        "(32 bits a parameter for each participant and round). “vs dense SGD ×N”: N times fewer "
        "than a dense float32 gradient at every local step. Accuracy is the share of test samples "
        "that the server's model gets right. Wall time is that of the machine of the run."
    )
    return html.table(html.grouped_headings(wanted), rows) + html.paragraph(note, "note")


def to_reach(runs: Sequence[Run]) -> str:
    """Return what each run spent until it first had the accuracy that all of them reach."""
    bests = [run.best_accuracy for run in runs]
    if len(runs) < 2 or None in bests:
        return ""
    target = math.floor(200 * min(best for best in bests if best is not None)) / 200
    timed = any(run.simulated_s for run in runs)
    names = ["run", "rounds", "bits up, all clients", "bits down, all clients"]
    rows = []
    for index, run in enumerate(runs):
        point = run.first_at(target)
        assert point is not None, "the target is at most the best accuracy of each run"
        row = [html.run_name(index, run), f"{point.round:,}"]
        row += [human_bits(point.up_bits), human_bits(point.down_bits)]
        if timed:
            row.append(human_seconds(point.simulated_s) if run.simulated_s else MISSING)
        rows.append(row)
    header = [html.headings(names + ["simulated time"] * timed)]
    words = (
        f"What each run had spent when it was first evaluated at {100 * target:g}% or more: "
        "the highest accuracy, in steps of 0.5%, that every run reached."
    )
    title = f"<h2>Cost of {100 * target:g}% accuracy</h2>"
    return title + html.paragraph(words) + html.table(header, rows)


def downstream(runs: Sequence[Run]) -> str:
    """Return how downstream was charged, read off the ledgers."""
    lines = [
        f"<li>{html.run_name(index, run)}: {html.text(_charged_down(run))}</li>"
        for index, run in enumerate(runs)
    ]
    words = (
        "A full model costs 32 bits a parameter. A client that was away is charged for what it "
        "missed, or for the full model: nothing reaches it for free. Counted are the messages "
        "that start a client's training."
    )
    title = f"<h2>How downstream was charged</h2>{html.paragraph(words)}"
    return f'{title}<ul class="plain">{"".join(lines)}</ul>'


def _charged_down(run: Run) -> str:
    """Return one run's downstream messages in words."""
    if run.ledger is None:
        return "the ledger is not written yet."
    of_row = run.ledger.columns()
    chosen = (of_row["direction"] == "down") & (of_row["kind"] == "train")
    sent, full = of_row["payload_bits"][chosen], of_row["dense_bits"][chosen]
    if not len(sent):
        return "no message went down."
    num_full, mean_bits = int((sent >= full).sum()), float(sent.mean())
    mean = f"{human_bits(mean_bits)} a participant and round on average"
    if num_full == len(sent):
        return f"the full model to every participant of every round ({mean})."
    return (
        f"missed updates or the full model, whichever was fewer bits: {num_full:,} of "
        f"{len(sent):,} messages were as large as the full model ({mean})."
    )


def where_bits_went(runs: Sequence[Run]) -> str:
    """Return the parts of the payloads per run and direction, in total and per client."""
    names = ["messages", "positions", "values", "headers", "padding", "payload"]
    names += ["mean a client", "most a client", "envelope"]
    tables = []
    for direction in DIRECTIONS[::-1]:
        rows = [
            [html.run_name(index, run), *_parts(run, direction)] for index, run in enumerate(runs)
        ]
        tables.append(html.table([html.headings(["run", *names])], rows, title=_SIDE[direction]))
    note = (
        "All columns but the two “a client” are sums over all clients and all rounds, of every "
        "kind of message. Payload = positions + values + headers + padding. The “a client” "
        "columns are a client's payload bits over the whole run, among the clients with any "
        "message. Envelope: the size of the messages around and with what travelled inside, "
        "without their metadata; no ratio counts it."
    )
    title = "<h2>Where the bits went</h2>"
    return title + "".join(tables) + html.paragraph(note, "note")


def _parts(run: Run, direction: Direction) -> list[str]:
    """Return one run's cells of the table above."""
    if run.ledger is None:
        return [MISSING] * 9
    totals = run.ledger.totals(direction)
    of_clients = [t.payload_bits for t in run.ledger.totals_by_client(direction).values()]
    mean_bits = sum(of_clients) / len(of_clients) if of_clients else 0
    parts = (totals.position_bits, totals.value_bits, totals.header_bits, totals.padding_bits)
    sums = (totals.payload_bits, mean_bits, max(of_clients, default=0), totals.envelope_bits)
    return [f"{totals.num_messages:,}", *map(human_bits, parts), *map(human_bits, sums)]


def settings(runs: Sequence[Run]) -> str:
    """Return which settings differ between the runs, and which are shared."""
    different, shared = differing_settings(runs), shared_settings(runs)
    parts = ["<h2>Settings</h2>"]
    if different:
        names = [html.run_name(index, run) for index, run in enumerate(runs)]
        header = ["<th>differing setting</th>", *(f"<th>{name}</th>" for name in names)]
        rows = [[_code(key), *map(_setting, values)] for key, values in different.items()]
        parts.append(html.table([header], rows, "text sticky"))
    elif len(runs) > 1:
        parts.append(html.paragraph("The runs have the same settings, apart from their names."))
    rows = [[_code(key), _setting(value)] for key, value in shared.items()]
    title = "Settings that all runs share" if len(runs) > 1 else "All settings"
    listed = html.table([html.headings(["setting", "value"])], rows, "text")
    parts.append(f"<details><summary>{title} ({len(rows)})</summary>{listed}</details>")
    return "".join(parts)


def _code(value: object) -> str:
    """Return a value as code."""
    return f"<code>{html.text(value)}</code>"


def _setting(value: object) -> str:
    """Return a setting's value as it stands in a config; a dash where there is none."""
    if value is None or value == {}:
        return MISSING
    return _code(str(value).lower() if isinstance(value, bool) else value)
