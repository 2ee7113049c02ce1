"""The table of beliefs in docs/beliefs.md is that of the code."""

import math
import re

import pytest

from roost_core.placement import beliefs
from roost_core.placement.beliefs import Belief
from tools.root import ROOT

PAGE = (ROOT / "docs" / "beliefs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("heading", "table"),
    [("The webhook", beliefs.WEBHOOK), ("The controllers", beliefs.CONTROLLERS)],
)
def test_each_belief_has_its_row_with_its_age_and_what_happens_then(
    heading: str, table: tuple[Belief, ...]
) -> None:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| .+? \| (.+?) \| (.+?) \|$", section, re.MULTILINE)[1:]
    assert [name for name, _, _ in rows] == [belief.name for belief in table]
    for belief, (_, age, then) in zip(table, rows, strict=True):
        assert belief.then in then
        assert math.isinf(belief.age_seconds) or re.search(rf"\b{belief.age_seconds:g} s\b", age), (
            belief
        )
