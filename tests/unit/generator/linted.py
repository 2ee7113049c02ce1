"""Lint values laid over the defaults."""

import re

import pytest

from generator import checks
from generator.faults import Fault, ValuesError
from generator.pipeline import render
from generator.schema.check import find_faults
from generator.values.loader import load
from generator.values.merge import Merged, merge_values
from generator.values.release_name import Release
from tests.builders import CHART_VALUES
from tests.recorded_data import VALUES


def table(name: str) -> list[tuple[str, str]]:
    """Rows of `values => reason` of a file in tests/data/values; an indented line goes on with the
    row above it.
    """
    text = re.sub("^#.*\n", "", (VALUES / f"{name}.txt").read_text(), flags=re.MULTILINE)
    rows = text.strip().replace("\n  ", " ").split("\n")
    return [(values, reason) for values, _, reason in (row.partition(" => ") for row in rows)]


def laid(text: str) -> Merged:
    return merge_values(CHART_VALUES, [load(text.encode(), "prod.yaml")])


def merged(text: str) -> Merged:
    values = laid(text)
    assert [str(fault) for fault in find_faults(values)] == [], (
        "the lint is for values that fit the schema"
    )
    return values


def found(text: str, release: Release | None = None) -> list[Fault]:
    return checks.find_faults(merged(text), release or Release())


def said(text: str, release: Release | None = None) -> str:
    return "\n".join(str(fault) for fault in found(text, release))


def assert_refused(text: str, reason: str) -> None:
    """The lint says so, as an error with a line, and the values are refused."""
    faults = found(text)
    hits = [fault for fault in faults if reason in str(fault)]
    assert hits, faults
    assert hits[0].severity == "error"
    assert (hits[0].file, bool(hits[0].line)) == ("prod.yaml", True), (
        "a default isn't at fault, what is beside it is"
    )
    with pytest.raises(ValuesError):
        render(merged(text), Release())


def assert_warned(text: str, reason: str) -> None:
    faults = found(text)
    hits = [fault for fault in faults if reason in str(fault)]
    assert hits, faults
    assert hits[0].severity == "warning"
