"""Pieces of HTML: every text that comes from a run is escaped here."""

from collections.abc import Sequence
from html import escape

from fedsbc.report.figures import colour
from fedsbc.report.runs import Run
from fedsbc.report.summary_table import unfinished


def text(value: object) -> str:
    """Return any value as text for a page."""
    return escape(str(value))


def paragraph(words: str, kind: str = "") -> str:
    """Return a paragraph of plain words."""
    attribute = f' class="{kind}"' if kind else ""
    return f"<p{attribute}>{text(words)}</p>"


def run_name(index: int, run: Run) -> str:
    """Return a run's label with its colour, marked if it has not ended."""
    mark = " (unfinished)" if unfinished(run) else ""
    dot = f'<span class="dot" style="background:{colour(index)}"></span>'
    return f"{dot}{text(run.label)}{mark}"


def table(
    header: Sequence[Sequence[str]],
    rows: Sequence[Sequence[str]],
    kind: str = "sticky",
    title: str = "",
) -> str:
    """Return a table that scrolls by itself where the page is narrow.

    Args:
        header: lines of `<th>` elements, as HTML.
        rows: cells as HTML; the first of each row is its heading.
        kind: the table's class.
        title: plain words above the table.
    """
    head = "".join(f"<tr>{''.join(line)}</tr>" for line in header)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    caption = f"<caption>{text(title)}</caption>" if title else ""
    return (
        f'<div class="scroll"><table class="{kind}">{caption}<thead>{head}</thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def headings(names: Sequence[str]) -> list[str]:
    """Return one line of column headings."""
    return [f'<th scope="col">{text(name)}</th>' for name in names]


def grouped_headings(columns: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return two lines of headings: the groups over the names, after an empty first column."""
    groups = list(dict.fromkeys(group for group, _ in columns))
    counts = {group: sum(g == group for g, _ in columns) for group in groups}
    spans = [f'<th scope="colgroup" colspan="{counts[g]}">{text(g)}</th>' for g in groups]
    return [["<th></th>", *spans], headings(["run", *(name for _, name in columns)])]
