"""The page of results: its content and its pictures."""

from pathlib import Path
from xml.etree import ElementTree

from bench import BENCHES
from bench.kit.results import Result
from bench.pages import document, plot
from bench.pages.document import RUNS, Run

MACHINE = {"cpu": "x", "cores": 2, "loadBefore": 1.0}


def result(bench: str, case: str, metric: str, value: float, **more: object) -> Result:
    settings = more.pop("settings", {"store": "SQLite 3", "executions": 100})
    return Result(bench=bench, case=case, metric=metric, value=value, unit="1/s", settings=settings, **more)


def run(command: str, *results: Result, failure: str = "") -> Run:
    return Run(
        command=f"python -m bench {command}", at="2026-01-01T00:00:00Z", commit="abc", machine=MACHINE,
        results=list(results), failure=failure,
    )  # fmt: skip


def written(folder: Path, *runs: Run) -> str:
    document.write(folder / "PERFORMANCE.md", runs)
    return (folder / "PERFORMANCE.md").read_text()


def test_every_bench_is_run_for_the_page():
    assert {name for name, *_ in RUNS} == BENCHES.keys()


def test_the_page_shows_targets_and_failures(tmp_path):
    slow = result("throughput", "sqlite drain", "executions", 50_000,
                  settings={"store": "SQLite 3", "executions": 50_000, "runs": [50_000.0, 55_000.0]})  # fmt: skip

    text = written(tmp_path, run("throughput", slow), run("idle", failure="It broke."))

    assert "- from 2026-01-01T00:00:00Z to 2026-01-01T00:00:00Z, commit abc\n- cpu x, cores 2\n" in text
    assert "0 reached, 1 missed, 0 not tried." in text
    row = "| executions | 50,000 | 1/s | at least 60,000 at executions 50,000: **missed** | 50,000, 55,000"
    assert f"{row} |\n\n- store SQLite 3, executions 50000\n" in text
    assert "It did not end well:\n\n```text\nIt broke.\n```" in text
    assert "](performance/throughput-targets.svg)" in text


def test_stages_have_one_column_per_case(tmp_path):
    found = [
        result("stages", f"{store} a parcel of 500", stage, value)
        for store, value in (("sqlite", 1.0), ("postgresql", 2.0))
        for stage in ("store: submit +", "sum")
    ]

    text = written(tmp_path, run("stages", *found))

    assert "| us/execution | sqlite a parcel of 500 | postgresql a parcel of 500 |" in text
    assert "| store: submit + | 1 | 2 |" in text
    assert "| store | 1 us, 100% | 2 us, 100% |" in text


def test_pictures_are_drawn_for_results_with_points(tmp_path):
    found = (
        result("latency", "sqlite idle pick-up", "p50", 2.0, points=[(1.0, 0.5), (30.0, 1.0)]),
        result("growth", "sqlite history", "executions with", 9.0, points=[(0.0, 10.0), (1e6, 9.0)]),
        result("growth", "sqlite queued", "executions with", 9.0, points=[(0.0, 10.0), (1e6, 9.0)]),
        result("stages", "sqlite a parcel of 500", "store: submit +", 3.0),
    )

    written(tmp_path, *(run(each.bench, each) for each in found))

    drawn = {path.stem: path.read_text() for path in (tmp_path / "performance").glob("*.svg")}
    assert drawn.keys() == {
        "latency-targets", "latency-distribution", "growth-history", "growth-queued", "stages-sqlite",
    }  # fmt: skip
    for text in drawn.values():
        ElementTree.fromstring(text)
        assert "prefers-color-scheme:dark" in text


def test_one_bench_can_be_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "measure", lambda command: run(" ".join(command), result(command[0], "a", "b", 2.0)))
    written(tmp_path, run("idle", result("idle", "a", "b", 1.0)), run("start", result("start", "a", "b", 1.0)))

    assert document.main([str(tmp_path / "PERFORMANCE.md"), "--only", "idle"]) == 0

    kept = document.stored_runs(tmp_path / "performance" / "results.jsonl")
    assert [(each.command, each.results[0].value) for each in kept] == [
        ("python -m bench start", 1.0),
        ("python -m bench idle", 2.0),
    ]


def test_large_stores_are_selected_by_a_flag():
    usual, large = ({name: flags for name, *flags in document.chosen([], large)} for large in (False, True))

    assert usual["growth"] == []
    assert large["growth"] == ["--history", "10000000", "--queued", "5000000"]
    assert large["start"] == []


def test_a_bar_is_at_most_two_targets_long():
    drawn = plot.bars("t", [plot.Bar("a", 10, 1, "10", True), plot.Bar("b", 2, 1, "2", True)])

    widths = [bar.get("width") for bar in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths[0] == widths[1]


def test_ticks_are_round():
    assert plot.Axis("x", 0, 47).ticks() == [0, 10, 20, 30, 40]
    assert plot.Axis("x", 0.1, 1000, True).ticks() == [0.1, 1, 10, 100, 1000]
