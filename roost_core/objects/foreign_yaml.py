"""Read YAML or JSON that strangers wrote, within bounds.

Two kinds of text would harm the process. PyYAML builds nested lists by recursion in C, so deep text
ends the process. And a few nested aliases stand for billions of values. Both are found before
anything is built, in the parser's events. Callers with another loader use `first_line_below`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

MOST_DEPTH: Final = 64
# The most values and characters that all aliases of a text stand for.
MOST_WRITTEN_OUT: Final = 2**20
# A text with fewer marks than this can't be too deep.
_MANY_MARKS: Final = 64
# How a list or a mapping may begin.
_MARKS: Final = ("[", "{", "- ", "-\n", "? ", ": ")


class ForeignTextError(ValueError):
    """The text isn't valid YAML, or exceeds a bound. The message says what was found, and where."""


def load_foreign(text: str | bytes) -> Any:  # noqa: ANN401 - whatever the text holds
    """Read a text with one document. Raises ForeignTextError."""
    documents = list(load_all_foreign(text))
    if len(documents) > 1:
        raise ForeignTextError("several documents")
    return documents[0] if documents else None


def load_all_foreign(text: str | bytes) -> Iterator[Any]:
    """Read the documents of a text, after a check that the whole text is within bounds.

    Raises ForeignTextError.
    """
    try:
        plain = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        _check_bounds(plain)
        yield from yaml.load_all(plain, Loader=yaml.CSafeLoader)
    except UnicodeDecodeError:
        raise ForeignTextError("bytes that aren't UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        raise ForeignTextError(f"invalid YAML{line}") from None
    except ForeignTextError:
        raise
    except (ValueError, RecursionError, OverflowError) as error:
        # A date that doesn't exist, or a number that is too large.
        raise ForeignTextError(f"a value that can't be read ({type(error).__name__})") from None


def first_line_below(text: str | bytes, most_depth: int) -> int | None:
    """The first line with a list or mapping deeper than `most_depth`; None: there is none.

    A text without lists and mappings has depth 0. Raises yaml.YAMLError.
    """
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > most_depth:
                return _line(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


def _check_bounds(text: str) -> None:
    """Raise ForeignTextError for a text that is too deep, or whose aliases stand for too much."""
    may_be_deep = sum(text.count(mark) for mark in _MARKS) >= _MANY_MARKS
    if may_be_deep:
        line = first_line_below(text, MOST_DEPTH)
        if line is not None:
            raise ForeignTextError(f"lists or mappings more than {MOST_DEPTH} deep in line {line}")
    if "*" in text:
        _check_aliases(text)


def _check_aliases(text: str) -> None:
    """Raise ForeignTextError if aliases stand for too much.

    The cost of a value is the number of values and characters that it has, with all aliases in it
    written out.
    """
    written_out = 0
    # By anchor: the cost of the value that it names.
    costs: dict[str, int] = {}
    # Of the lists and mappings that are open, from the outermost: their anchors, and their costs so
    # far. The first item stands for the document.
    anchors: list[str | None] = [None]
    totals = [0]
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        cost = 0
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(event.anchor)
            totals.append(1)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor = anchors.pop()
            cost = totals.pop()
            if anchor is not None:
                costs[anchor] = cost
        elif isinstance(event, yaml.ScalarEvent):
            cost = 1 + len(event.value)
            if event.anchor is not None:
                costs[event.anchor] = cost
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in anchors:
                where = f"in line {_line(event)}"
                raise ForeignTextError(f"an alias (*) within what it names {where}")
            cost = costs.get(str(event.anchor), 1)
            written_out += cost
            if written_out > MOST_WRITTEN_OUT:
                where = f"in line {_line(event)}"
                raise ForeignTextError(f"aliases (*) that stand for too many values {where}")
        totals[-1] += cost


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0
