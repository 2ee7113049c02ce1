"""The page of values: which comment belongs to which key."""

from __future__ import annotations

import yaml
from yaml.nodes import MappingNode

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
