"""The page of values: which comment belongs to which key."""

from __future__ import annotations

import yaml
from yaml.nodes import MappingNode

from generator.locations import chart_folder
from tools.write_values_reference import Row, rows


def read(text: str) -> list[Row]:
    root = yaml.compose(text, yaml.SafeLoader)
    assert isinstance(root, MappingNode)
    return list(rows(root, text.splitlines()))


def test_a_key_that_is_commented_out_ends_a_comment_and_has_its_own_row() -> None:
    text = """\
user:
  # Kept warm,
  # size: of nodes, in this order.
  # warm: {size: 0}
  # Draws to the marked node.
  attract: false
"""
    assert read(text) == [
        Row("user.warm", "", "Kept warm, size: of nodes, in this order. `warm: {size: 0}`"),
        Row("user.attract", "false", "Draws to the marked node."),
    ]


def test_prose_that_names_a_key_first_is_no_key() -> None:
    assert read("# true: it is on.\n# false: off.\non: true\n") == [Row("on", "true", "true: it is on. false: off.")]


def count_leaves(value: object) -> int:
    """Keys that hold no map of keys; a list counts once."""
    return sum(map(count_leaves, value.values())) if isinstance(value, dict) and value else 1


def test_the_values_begin_with_what_an_operator_sets_and_stay_few_and_narrow() -> None:
    text = (chart_folder() / "values.yaml").read_text()
    values = yaml.safe_load(text)
    first = "image imageRegistry singleuser placeholders imageGate prePuller scheduler sharedPools recorder monitoring"
    assert list(values)[:11] == [*first.split(), "webhook"]
    chosen = {"imageGate": "mode", "prePuller": "enabled", "scheduler": "target", "webhook": "failurePolicy"}
    assert {group: next(iter(values[group])) for group in chosen} == chosen
    assert count_leaves(values) <= 190
    assert [line for line in text.splitlines() if len(line) > 100] == []
