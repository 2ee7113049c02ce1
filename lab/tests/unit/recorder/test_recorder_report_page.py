from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it has no types
from plotly.offline import get_plotlyjs_version  # type: ignore[import-untyped]  # it has no types

from lab.tests.recorded import BEGIN, HOUR, empty_store, fail_record, story_records
from roost_lab.recorder.store.records import GapRecord
from roost_lab.report.gather import gather
from roost_lab.report.page import make_page
from roost_lab.report.sections import parts, tables

if TYPE_CHECKING:
    from pathlib import Path

    from roost_lab.pages.drawing import Figure
    from roost_lab.report.subject import Report

XSS = '<script>alert("x")</script><a href="https://evil.example.org">'


class Page(HTMLParser):
    """What a page refers to, and what elements and texts it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references: list[tuple[str, str, str]] = []
        self.tags: Counter[str] = Counter()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.policy = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "action", "data", "poster", "xlink:href") or name.startswith("on"):
                self.references.append((tag, name, value or ""))
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts.append(data)
        else:
            self.texts.append(data)


def test_the_page_refers_to_nothing_outside_itself(report: Report) -> None:
    page = Page(make_page(report, "about"))
    assert page.references
    assert all(value.startswith(("#", "data:,")) for _, _, value in page.references), page.references
    styles = [text for text in page.scripts if "--paper" in text]
    assert styles
    assert all("url(" not in text and "@import" not in text for text in styles if "Plotly" not in text)
    assert page.policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in page.policy.partition("style-src")[0]


def test_the_page_stays_small(report: Report) -> None:
    assert len(make_page(report, "about").encode()) < 1_600_000


def test_the_page_has_a_table_behind_each_plot(report: Report) -> None:
    page = Page(make_page(report, "about"))
    text = " ".join(page.texts)
    for table in tables(report):
        if table.rows and not table.only_data:
            assert table.title in text, table.title
    assert page.tags["details"] == page.tags["table"] >= 9


def test_a_section_with_rows_never_says_that_it_has_none(report: Report) -> None:
    for part in parts(report):
        if any(table.rows for table in part.tables) and not any(part.figures):
            assert not part.nothing, f"{part.key}: {part.nothing}"


def test_names_from_a_cluster_are_text_and_nothing_else(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    renamed: list[Any] = story_records(XSS)
    renamed = [
        replace(record, **{name: XSS for name in ("node_name", "scheduler") if getattr(record, name, "")})
        for record in renamed
    ]
    store.write(
        [*renamed, fail_record("q", 1, {XSS: 1}), GapRecord(kind="pods", from_us=BEGIN, to_us=BEGIN + 5, why=XSS)], {}
    )
    report = gather(store)
    plain = story_page(tmp_path)
    page = Page(make_page(report, XSS))
    assert page.tags["script"] == plain.tags["script"] == 3
    assert page.tags["a"] == plain.tags["a"]
    assert any(XSS in text for text in page.texts)
    data = next(text for text in page.scripts if text.startswith("{"))
    assert "<" not in data
    # Plotly reads some HTML in its texts: there everything from the cluster is escaped once more.
    drawn = json.loads(data)
    assert "&lt;" in json.dumps(drawn)
    for text in strings(drawn):
        assert not set("<>") & set(text.replace("<br>", "").replace("<extra></extra>", "")), text


def story_page(folder: Path) -> Page:
    (folder / "plain").mkdir()
    store = empty_store(folder / "plain")
    store.write([*story_records(), GapRecord(kind="pods", from_us=BEGIN, to_us=BEGIN + 5, why="why")], {})
    return Page(make_page(gather(store), "about"))


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for one in value.values() for text in strings(one)]
    return [text for one in value for text in strings(one)] if isinstance(value, list) else []


def test_the_script_that_draws_is_the_release_whose_words_are_checked() -> None:
    script = (resources.files("roost_lab.pages") / "plotly-basic.min.js").read_text(encoding="utf-8")
    assert f"plotly.js (basic - minified) v{get_plotlyjs_version()}\n" in script[:200]


def test_plotly_knows_every_word_of_the_figures(report: Report) -> None:
    figures = drawn(report)
    assert set(figures) == {
        "starts_over_time",
        "starts_by_class",
        "starts_by_image",
        "pulls_over_time",
        "pulls_by_image",
        "occupancy_over_time",
        "failures",
    }
    for figure in figures.values():
        # Raises ValueError on an attribute that Plotly doesn't have; colours come from the page.
        go.Figure(json.loads(coloured({"data": figure.data, "layout": figure.layout})))


def drawn(report: Report) -> dict[str, Figure]:
    return {figure.key: figure for part in parts(report) for figure in part.figures if figure is not None}


def coloured(figure: dict[str, Any]) -> str:
    text = json.dumps(figure)
    for name in set(strings(figure)):
        if name.startswith("--"):
            text = text.replace(json.dumps(name), '"#123456"')
    return text


def test_an_empty_database_gives_a_page_that_says_so(tmp_path: Path) -> None:
    report = gather(empty_store(tmp_path))
    assert report.is_empty
    page = Page(make_page(report, "about"))
    assert any("Nothing has been recorded" in text for text in page.texts)
    assert page.tags["script"] == 0


def test_a_time_without_records_gives_a_page_that_names_the_time_with_them(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    store.write(story_records(), {})
    page = Page(make_page(gather(store, BEGIN - 3 * HOUR, BEGIN - 2 * HOUR), "about"))
    assert any("outside the record, which covers 2027-01-15 08:00" in text for text in page.texts)
