"""A page of sections: what of a table and of a plot stands in it."""

import re
from html import unescape

import pytest

from roost_lab.pages.drawing import Figure
from roost_lab.pages.html_page import Part, render
from roost_lab.pages.table import Cell, Column, Table, Unit, show

COLUMNS = tuple(Column(name, name, Unit.TEXT) for name in ("first", "second", "third"))


def page_of(figures: list[Figure], rows: list[tuple[Cell, ...]]) -> str:
    part = Part("part", "Part", "", figures, [Table("table", "Table", COLUMNS, rows)], "")
    return unescape(
        render(title="Title", about="", footer="", notices=[], tiles=[], parts=[part], show=show)
    )


@pytest.mark.parametrize(
    ("rows", "headings"),
    [
        ([("a", "b", "c")], ["first", "second", "third"]),
        ([("a", "", "c"), ("a", None, "c")], ["first", "third"]),
        ([("", "b", None), ("a", "b", None)], ["first", "second"]),
        # They are known.
        ([("a", 0, False)], ["first", "second", "third"]),
    ],
)
def test_a_column_in_which_nothing_is_known_is_left_out(
    rows: list[tuple[Cell, ...]], headings: list[str]
) -> None:
    page = page_of([], rows)
    assert re.findall(r"<th [^>]*>(\w+)</th>", page) == headings
    assert page.count("<td") == len(rows) * len(headings)


@pytest.mark.parametrize("caption", ["Pulls in each step.", "Pulls in each step"])
def test_a_plot_is_named_to_a_screen_reader_by_its_caption_as_a_sentence(caption: str) -> None:
    figure = Figure("figure", caption, (), [], {"height": 100})
    assert 'aria-label="Pulls in each step. The table below has the numbers."' in page_of(
        [figure], [("a", "b", "c")]
    )
