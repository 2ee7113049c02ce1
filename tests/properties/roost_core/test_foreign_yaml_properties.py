"""What strangers wrote is read as PyYAML reads it, or refused in a sentence, in bounded time."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from roost_core.objects.foreign_yaml import (
    MOST_DEPTH,
    ForeignTextError,
    first_line_below,
    load_all_foreign,
    load_foreign,
)

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=40,
)


@given(st.lists(PLAIN, min_size=1, max_size=4))
def test_what_is_within_bounds_is_read_as_it_was_written(documents: list[object]) -> None:
    text = yaml.safe_dump_all(documents)
    assert list(load_all_foreign(text)) == documents
    assert list(load_all_foreign(text.encode())) == documents


@given(st.text(alphabet="[]{}-&*ab: ,\n\"'!?|>%#", max_size=200))
def test_whatever_was_written_is_read_or_refused_in_a_line(text: str) -> None:
    said = "nothing"
    try:
        list(load_all_foreign(text))
    except ForeignTextError as error:
        said = str(error)
    assert said.isprintable()


@given(
    st.sampled_from(["[", "{a: ", "- ", "? ", "a: ["]), st.integers(MOST_DEPTH + 1, 3 * MOST_DEPTH)
)
def test_a_document_that_is_nested_too_deep_is_refused(opening: str, depth: int) -> None:
    with pytest.raises(ForeignTextError):
        load_foreign(opening * depth)


@given(st.integers(1, 2 * MOST_DEPTH), st.integers(0, MOST_DEPTH + 2))
def test_the_line_of_the_first_that_lies_deeper_is_found(depth: int, most: int) -> None:
    text = "\n".join("[" * depth) + "]" * depth
    assert first_line_below(text, most) == (most + 1 if depth > most else None)
    if depth <= MOST_DEPTH:
        load_foreign(text)


@given(st.integers(2, 9), st.integers(8, 30))
def test_aliases_that_multiply_are_refused(each: int, levels: int) -> None:
    text = "- &a0 [" + ", ".join(["z"] * 9) + "]\n"
    for level in range(1, levels):
        text += f"- &a{level} [" + ", ".join([f"*a{level - 1}"] * each) + "]\n"
    if each**levels < 2**10:
        load_foreign(text)
    elif each ** (levels - 2) > 2**20:
        with pytest.raises(ForeignTextError, match="aliases"):
            load_foreign(text)


def test_a_few_aliases_are_read() -> None:
    assert load_foreign("a: &x {b: 1}\nc: *x\n") == {"a": {"b": 1}, "c": {"b": 1}}


def test_deep_text_doesnt_end_the_process() -> None:
    """In a process of its own: PyYAML's recursion in C ends one."""
    program = (
        "from roost_core.objects.foreign_yaml import *\n"
        "for text in ('[' * 120000, '- ' * 120000, '{a: ' * 120000, '&a [*a]'):\n"
        "    try: load_foreign(text)\n"
        "    except ForeignTextError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.count("\n")) == (0, 4), done.stderr
