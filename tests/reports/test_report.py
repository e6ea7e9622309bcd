"""The report: what it draws, what it says, and that it needs nothing else."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fedsbc.errors import ConfigError, RunError
from fedsbc.report import write_report
from fedsbc.report.figures import draw, figures
from fedsbc.report.page import render
from fedsbc.report.runs import differing_settings, read_runs, shared_settings
from fedsbc.run_folder import RunFolder

Make = Callable[..., RunFolder]
DOWN_BITS = 32_048


class Page(HTMLParser):
    """The visible words of a page, its tags, and the addresses it asks for."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.addresses: list[str] = []
        self.hidden = 0
        self.open: list[str] = []
        self.feed(page)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in ("script", "style")
        self.addresses += [str(v) for k, v in attrs if k in ("src", "href", "srcset", "data")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("script", "style")
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.words.append(data)


def page_of(*folders: RunFolder) -> Page:
    return Page(render(read_runs(folders)))


def test_the_page_asks_the_network_for_nothing(make_run: Make, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "report.html"
    write_report([make_run("fedavg"), make_run("sbc")], out)
    page = out.read_text(encoding="utf-8")
    parsed = Page(page)
    assert parsed.addresses == []
    assert parsed.open == []
    assert "@import" not in page.partition("</style>")[0]
    assert page.count("plotly.js v") == 1  # the library is inlined, and once
    assert page.count("Plotly.newPlot(") >= 3


def test_curves_are_running_sums_of_the_rounds(make_run: Make) -> None:
    runs = read_runs([make_run("sbc", second_s=1.5)])
    drawn = {figure.key: draw(figure, runs).data[0] for figure in figures(runs)}
    assert {key: list(trace.x) for key, trace in drawn.items()} == {
        "rounds": [1, 3, 4],
        "up": [640, 1920, 2560],
        "down": [2 * DOWN_BITS, 6 * DOWN_BITS, 8 * DOWN_BITS],
        "time": [1.5, 4.5, 6.0],
    }
    assert all(list(trace.y) == [0.25, 0.75, 0.5] for trace in drawn.values())


def test_upstream_is_on_a_log_axis_and_downstream_where_the_runs_lie_far_apart(
    make_run: Make,
) -> None:
    near = read_runs([make_run("a"), make_run("b", up_bits=64)])
    far = read_runs([make_run("c"), make_run("d", down_bits=320)])
    for runs, expected in ((near, [None, "log", None]), (far, [None, "log", "log"])):
        scales = [draw(figure, runs).layout.xaxis.type for figure in figures(runs)]
        assert scales == expected


def test_simulated_time_is_drawn_only_where_a_run_has_it(make_run: Make) -> None:
    without = read_runs([make_run("a")])
    assert "time" not in [figure.key for figure in figures(without)]
    mixed = read_runs([make_run("b"), make_run("c", second_s=3600.0)])
    (time,) = (figure for figure in figures(mixed) if figure.key == "time")
    first, second = draw(time, mixed).data
    assert not first.x
    assert list(second.x) == [1.0, 3.0, 4.0]
    assert "hours" in time.axis


def test_a_run_has_one_colour_in_every_figure(make_run: Make) -> None:
    runs = read_runs([make_run(f"run{i}") for i in range(10)])
    looks = [
        [(trace.line.color, trace.line.dash) for trace in draw(figure, runs).data]
        for figure in figures(runs)
    ]
    assert all(look == looks[0] for look in looks)
    assert len(set(looks[0])) == 10


def test_the_table_has_the_figures_with_unit_and_direction(make_run: Make) -> None:
    # pitfall 29: unit, direction, and whether it is per client or of all
    text = page_of(make_run("sbc")).text
    # 8 messages of 320 bits up and of 32,048 bits down, against 32,000 bits each.
    for words in ("75.00%", "50.00%", "2.56 kbit", "×100", "×1,000", "256 kbit", "×1.00"):
        assert words in text
    assert "bits up, all clients" in text
    assert "bits down, all clients" in text
    assert "mean a client" in text
    assert "1.28 kbit" in text  # up, per client


def test_what_it_cost_to_reach_the_accuracy_that_all_reach(make_run: Make) -> None:
    text = page_of(make_run("fedavg"), make_run("sbc")).text
    section = text.partition("Cost of 75% accuracy")[2].partition("Accuracy against")[0]
    assert section.count("1.92 kbit") == 2  # three rounds with two messages of 320 bits


@pytest.mark.parametrize(
    ("down_bits", "words"),
    [
        (DOWN_BITS, "the full model to every participant of every round (32.0 kbit"),
        (800, "whichever was fewer bits: 0 of 8 messages were as large as the full model (800"),
    ],
)
def test_it_says_how_downstream_was_charged(make_run: Make, down_bits: int, words: str) -> None:
    assert words in page_of(make_run("sbc", down_bits=down_bits)).text


def test_differing_settings_are_told_apart_from_shared_ones(make_run: Make) -> None:
    first = make_run("a", settings="rounds: 4\nupstream: {name: sbc, density: 0.01}\n")
    second = make_run("b", settings="rounds: 4\nupstream: {name: none}\n")
    runs = read_runs([first, second])
    assert differing_settings(runs) == {
        "upstream.density": [0.01, None],
        "upstream.name": ["sbc", "none"],
    }
    assert shared_settings(runs) == {"seed": 0, "rounds": 4}
    text = page_of(first, second).text
    assert "upstream.density 0.01 –" in text
    assert "Settings that all runs share (2)" in text


def test_names_are_text_and_never_markup(make_run: Make) -> None:
    name = '<script>alert(1)</script> & "co"'
    page = page_of(make_run(name, path="odd", settings="note: '<b>bold</b>'\n"))
    assert page.open == []
    assert name in page.text
    assert "<b>bold</b>" in page.text


def test_runs_of_one_name_are_told_apart_by_their_folders(make_run: Make) -> None:
    labels = [run.label for run in read_runs([make_run("sbc", path=p) for p in ("x", "y")])]
    assert len(set(labels)) == 2
    assert [re.search(r"sbc \(.*[/\\](\w)\)", label)[1] for label in labels] == ["x", "y"]  # type: ignore[index]


def test_a_run_that_goes_on_is_marked_and_has_no_ratios(make_run: Make) -> None:
    folder = make_run("sbc", ended=False)
    (folder.path / "ledger.parquet").unlink()
    text = page_of(folder).text
    assert "sbc (unfinished) 75.00% 50.00% 2.56 kbit – –" in text
    assert "the ledger is not written yet" in text


def test_the_same_runs_give_the_same_page(make_run: Make) -> None:
    folders = [make_run("a"), make_run("b")]
    assert render(read_runs(folders)) == render(read_runs(folders))


def test_runs_that_cannot_be_reported_are_one_clear_error(make_run: Make, tmp_path: Path) -> None:
    folder = make_run("a")
    with pytest.raises(ConfigError, match="no run to report"):
        write_report([], tmp_path / "r.html")
    with pytest.raises(ConfigError, match="named twice"):
        write_report([folder, RunFolder.open(folder.path)], tmp_path / "r.html")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_report([folder], folder.path / "config.yaml" / "r.html")
    empty = RunFolder.create(tmp_path / "empty", "name: empty\n")
    with pytest.raises(RunError, match="no round has ended"):
        write_report([empty], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_a_run_without_any_evaluation_is_reported(make_run: Make) -> None:
    folder = make_run("a", ended=False)
    lines = re.sub(r'"accuracy": [\d.]+', '"accuracy": null', _rounds(folder).read_text())
    _rounds(folder).write_text(lines)
    assert "a (unfinished) – – 2.56 kbit" in page_of(folder, make_run("b")).text


def _rounds(folder: RunFolder) -> Path:
    return folder.path / "rounds.jsonl"
