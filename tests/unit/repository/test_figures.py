"""`python -m benchmarks.results` keeps what commands measured; `tools.write_figures` fills pages
from it.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import results
from benchmarks.ablation import AGAINST_HUB, LEARNING
from benchmarks.results import FigureTable, Results, ResultsError, find_tables
from benchmarks.term_figures import NONE
from roost_lab.simulator.setup.assumptions import Autoscaler
from tools import write_figures
from tools.root import ROOT

CELLS = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters="|\\"),
    max_size=8,
).map(str.strip)


@st.composite
def tables(draw: st.DrawFn) -> FigureTable:
    width = draw(st.integers(1, 4))
    row = st.tuples(*[CELLS] * width)
    return FigureTable(draw(row), tuple(draw(st.lists(row, min_size=1, max_size=4))))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "FOLDER", tmp_path / "lab" / "results")
    return tmp_path / "lab" / "results"


@given(found=st.lists(tables(), min_size=1, max_size=3))
def test_tables_that_a_command_prints_are_found_again(found: list[FigureTable]) -> None:
    printed = "\n\nWords between them.\n".join(table.markdown() for table in found)
    assert list(find_tables(f"A title\n{printed}\nand an end | with a bar")) == found


@given(found=st.lists(tables(), min_size=1, max_size=3))
def test_results_are_read_as_they_were_written(
    found: list[FigureTable], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "FOLDER", tmp_path_factory.mktemp("results"))
        written = Results('python -m benchmarks.x --hubs "a b"', "abc", "2026-11-28", tuple(found))
        results.write_results("x", written)
        assert results.read_results("x") == written


@pytest.mark.parametrize(
    ("cell", "number"),
    [("1,290 (1,280 to 1,304)", 1290), ("+3.9 %", 3.9), ("-0.2", -0.2), ("51.79 (seed 4)", 51.79)],
)
def test_a_cells_number_is_its_median(cell: str, number: float) -> None:
    assert FigureTable(("arm", "figure"), (("ours", cell),)).number("figure", "ours") == number


def test_a_cell_that_is_missing_is_told_with_those_that_are_there() -> None:
    table = FigureTable(("arm", "figure"), (("ours", "-"), ("theirs", "2")))
    with pytest.raises(ResultsError, match="no column 'p95'; there are arm, figure"):
        table.cell("p95", "ours")
    with pytest.raises(ResultsError, match="no row 'nobody'; there are ours, theirs"):
        table.cell("figure", "nobody")
    with pytest.raises(ResultsError, match="ours, figure: no number in '-'"):
        table.number("figure", "ours")


def test_what_was_measured_is_measured_again_once_code_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org")
    top = folder.parent.parent

    def commit(file: str) -> str:
        (top / file).parent.mkdir(parents=True, exist_ok=True)
        (top / file).write_text(f"{file}\n")
        for words in (("add", "-A"), ("commit", "-qm", file)):
            subprocess.run([*git, *words], cwd=top, check=True)
        words = ("rev-parse", "--short=8", "HEAD")
        done = subprocess.run([*git, *words], cwd=top, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    subprocess.run([*git, "init", "-q"], cwd=top, check=True)
    monkeypatch.setattr(results, "ROOT", top)
    script = "print('| a | b |'); print('|---|---|'); print('| c | 1 |')"
    monkeypatch.setattr(results, "QUESTIONS", {"quick": f'python -c "{script}"'})
    first = commit("webhook/rules.py")
    assert results.main([]) == 0
    assert results.read_results("quick").tables == (FigureTable(("a", "b"), (("c", "1"),)),)
    assert results.read_results("quick").commit == first

    commit("docs/page.md")
    assert results.main(["quick"]) == 0
    assert results.read_results("quick").commit == first
    assert "quick: nothing changed since it was measured" in capsys.readouterr().err

    changed = commit("webhook/facts.py")
    assert results.main([]) == 0
    assert results.read_results("quick").commit == changed

    written = results.read_results("quick")
    for before in (replace(written, commit="0123abcd"), replace(written, how=results.CARRIED_OVER)):
        results.write_results("quick", before)
        assert results.main([]) == 0
        assert results.read_results("quick") == written


@pytest.mark.parametrize("script", ["import sys; sys.exit(3)", "print('no table')"])
def test_a_command_that_fails_leaves_the_results_alone(
    script: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "QUESTIONS", {"bad": f'{sys.executable} -c "{script}"'})
    monkeypatch.setattr(results, "_git", lambda *words: "" if words[0] == "status" else "0123abcd")
    assert results.main([]) == 1
    assert not folder.exists()


def test_figures_are_not_measured_of_what_is_not_committed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "_git", lambda *_: " M lab/roost_lab/x.py")
    with pytest.raises(SystemExit):
        results.main([])
    assert "commit first" in capsys.readouterr().err


def test_pages_show_what_the_results_say() -> None:
    assert write_figures.main(["--check"]) == 0


def test_every_block_stands_on_a_page() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in write_figures.pages())
    missing = [
        name
        for name in write_figures.blocks()
        if f"<!-- {name}: written by {write_figures.WRITER} -->" not in text
    ]
    assert missing == []


def test_a_page_that_differs_from_the_results_is_not_fresh() -> None:
    begin = f"<!-- x: written by {write_figures.WRITER} -->\n"
    page = f"Before\n\n{begin}\nby hand\n\n<!-- end of x -->\nafter\n"
    filled = write_figures.fill(page, "page.md", {"x": lambda: "from results"})
    assert filled == page.replace("by hand", "from results")
    assert write_figures.fill(filled, "page.md", {"x": lambda: "from results"}) == filled


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("<!-- y: written by {} -->\n<!-- end of y -->\n", "'y' is no block"),
        ("<!-- x: written by {} -->\ntext\n", "begins and doesn't end"),
    ],
)
def test_a_place_that_is_wrong_is_told(page: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        write_figures.fill(page.format(write_figures.WRITER), "page.md", {"x": str})


def test_money_has_its_sign() -> None:
    assert [write_figures.as_money(amount) for amount in (18.4, -6.4, 0.2, -0.3)] == [
        "+$18",
        "-$6",
        "$0",
        "$0",
    ]


def test_readme_tells_a_term_with_either_autoscaler_and_its_worst() -> None:
    rows = [line.strip("| ").split(" | ") for line in write_figures.gains().splitlines()]
    by_hub = {row[1]: row[2:] for row in rows if len(row) == 8}
    for hub, autoscaler in (
        ("no placeholders", Autoscaler.CLUSTER_AUTOSCALER),
        ("no placeholders, with Karpenter (`WhenEmptyOrUnderutilized`)", Autoscaler.KARPENTER),
    ):
        tables = results.read_results(write_figures.TERMS[autoscaler]).tables
        later, against = tables[write_figures.LATER], tables[write_figures.AGAINST]
        today = later.number("late, %", autoscaler.value, NONE)
        more = against.number("node-hours", autoscaler.value, NONE)
        worst = against.number("worst, %", autoscaler.value, NONE)
        _nodes, late, _with_roost, _first_week, hours, money = by_hub[hub]
        assert late == f"{today:.0f} %"
        assert hours.endswith(f"(worst: {worst:+.1f} %)")
        assert money == write_figures.as_money(more * write_figures.NODE_HOUR)


def test_readmes_example_of_your_money_is_row_2s_percent() -> None:
    term = write_figures._Term(results=write_figures.LARGE_TERMS)
    share = float(term.change(NONE).removesuffix(" %")) / 100
    money = write_figures.as_money(share * 10 * 28 * 24 * write_figures.NODE_HOUR)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"With row 2's percent, 10 nodes are {money.lstrip('+')}." in readme


def test_money_of_ten_days_is_told_for_four_weeks() -> None:
    small = write_figures._small_binder()
    before, after = small.node_hours
    money = write_figures.as_money((after - before) * 28 / 10 * write_figures.NODE_HOUR)
    (row,) = [row for row in write_figures.gains().splitlines() if "600 starts" in row]
    assert row.strip("| ").split(" | ")[-1] == money


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("-41, -41, -47, -44 %", "-47 to -41 %"),
        ("0, 0, +1, 0 %", "0 to +1 %"),
        ("4, 4", "4"),
        ("", ""),
    ],
)
def test_figures_of_several_replays_are_told_by_the_least_and_the_greatest(
    folder: Path, cell: str, told: str
) -> None:
    table = FigureTable(("setting", "wait"), (("usual", cell),))
    results.write_results("x", Results("python -m x", "abc", "2026-11-28", (table,)))
    assert f"| usual | {told} |" in write_figures.ranges("x")


def test_a_part_of_roost_is_told_of_the_hubs_that_it_changes(folder: Path) -> None:
    none = "+0.0 % (+0.0 to +0.0)"
    rows = (
        ("lecture", "25", AGAINST_HUB, "-1.6 % (-3.0 to +0.0)", none, none, "+4.4 % (+1 to +5)"),
        ("", "", "no join", "+4.9 % (+0.0 to +9.0)", none, "+9.0 % (+0.0 to +9.0)", none),
        ("", "", "no puller", "+500.0 % (+1.0 to +900.0)", none, none, none),
        ("", "", "popular images", none, none, none, "-5.1 % (-6.0 to -5.0)"),
        ("", "", LEARNING, "-99.0 % (-99.0 to -99.0)", none, none, none),
        ("research", "4", AGAINST_HUB, none, none, none, "-0.4 % (-3.0 to +0.0)"),
        ("", "", "no puller", "+15.2 % (+1.0 to +20.0)", "+12.6 % (+9.0 to +13.0)", none, none),
    )
    figures = ("cold starts", "wait p95", "wait p99", "node-hours")
    table = FigureTable(("hub", "placeholders", "", *figures), rows)
    results.write_results("ablation", Results("python -m x", "abc", "2026-11-28", (table,)))
    told = write_figures.ablation()
    assert [line for line in told.splitlines() if line.startswith("|") and "---" not in line] == [
        "| hub | cold starts, % | wait p95, % | node-hours, % |",
        "| lecture | -2 | 0 | +4 |",
        "| research | 0 | 0 | 0 |",
        "| part that is away | hub | cold starts, % | wait p95, % | node-hours, % |",
        "| no puller | lecture | x6 | 0 | 0 |",
        "|  | research | +15 | +13 | 0 |",
        "| part that is added | hub | cold starts, % | wait p95, % | node-hours, % |",
        "| popular images | lecture | 0 | 0 | -5 |",
    ]


def test_hubs_that_stay_as_they_are_with_roost_are_counted_and_left_out(folder: Path) -> None:
    head = ("", "placeholders", "Cluster Autoscaler: p95, s", "p99, s", "node-hours")
    rows = (
        ("lecture", "0", "251 → 251", "1 → 9", "42 → 43"),
        ("", "25", "223 → 223", "1 → 1", "55 → 52"),
        ("research", "4", "2.3 → 2.5", "1 → 1", "431 → 433"),
    )
    table = FigureTable(head, rows)
    results.write_results("never-worse", Results("python -m x", "abc", "2026-11-28", (table,)))
    told = write_figures.never_worse()
    assert told.startswith("In 1 of 3 rows, no figure changes by 5 %.")
    assert [line for line in told.splitlines() if line.startswith("|") and "---" not in line] == [
        "|  | placeholders | Cluster Autoscaler: p95, s | node-hours |",
        "| lecture | 25 | 223 → 223 | 55 → 52 |",
        "| research | 4 | 2.3 → 2.5 | 431 → 433 |",
    ]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (results.QUESTIONS["term"], "python -m benchmarks.results term"),
        ("roost simulate --days 1", "roost simulate --days 1"),
    ],
)
def test_a_table_is_measured_again_by_its_name_or_by_its_command(
    folder: Path, command: str, told: str
) -> None:
    table = FigureTable(("setting", "wait"), (("usual", "1, 2"),))
    results.write_results("x", Results(command, "abc", "2026-11-28", (table,)))
    assert f"\n`{told}`, measured at abc" in write_figures.ranges("x")


@pytest.mark.parametrize("command", results.QUESTIONS.values(), ids=results.QUESTIONS)
def test_a_questions_command_is_a_benchmark_with_those_options(command: str) -> None:
    python, flag, module, *words = shlex.split(command)
    assert (python, flag) == ("python", "-m")
    source = (ROOT / "lab" / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    options = {word for word in words if word.startswith("--")}
    assert [option for option in sorted(options) if f'"{option}"' not in source] == []
    # What it measures is found in what it prints, not in what it says on the way.
    assert "print(" in source


def test_what_learning_cost_is_told_in_node_hours_alone(folder: Path) -> None:
    nothing = FigureTable(("a",), ())
    head = ("autoscaler", "seed", "hours not waited, told", "true", "wrong by, %")
    told = FigureTable(
        (*head, "node-hours, told", "true", "wrong by, %"),
        (("karpenter", "7", "1.0", "2.0", "50", "+30.0", "+40.0", "25"),),
    )
    tables = (nothing, nothing, nothing, told)
    results.write_results(
        write_figures.DRAWN_TERMS, Results("python -m x", "abc", "2026-11-28", tables)
    )
    assert "| seed | told | true | wrong by, % |" in write_figures.told_cost()
    assert "| 7 | +30.0 | +40.0 | 25 |" in write_figures.told_cost()
