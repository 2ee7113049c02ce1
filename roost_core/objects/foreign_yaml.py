"""Read YAML or JSON that strangers wrote, within bounds.

PyYAML builds nested nodes by recursion in C, so deep text ends the process, and a few nested
aliases stand for billions of values. Both are found here in the parser's events, which build
nothing. `first_line_below` is for those who build by a loader of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

MOST_DEPTH: Final = 64
# Values and characters that aliases stand for.
MOST_WRITTEN_OUT: Final = 2**20
# Fewer can't nest too deeply.
_MANY_MARKS: Final = 64
_MARKS: Final = ("[", "{", "- ", "-\n", "? ", ": ")


class ForeignTextError(ValueError):
    """The text is no YAML, or not within bounds; the message says what was found and the line."""


def load_foreign(text: str | bytes) -> Any:  # noqa: ANN401 - whatever the text holds
    """The text's one document. Raises ForeignTextError."""
    documents = list(load_all_foreign(text))
    if len(documents) > 1:
        raise ForeignTextError("several documents")
    return documents[0] if documents else None


def load_all_foreign(text: str | bytes) -> Iterator[Any]:
    """The text's documents, each once the whole text is known to be within bounds.

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
        # A date or a number that there can't be.
        raise ForeignTextError(f"a value that can't be read ({type(error).__name__})") from None


def first_line_below(text: str | bytes, most_depth: int) -> int | None:
    """The first line whose list or mapping lies deeper than `most_depth`; None: there is none.

    A text without any has a depth of 0. Raises yaml.YAMLError.
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
    """Raises ForeignTextError for what is too deep, or too much once aliases are written out."""
    if sum(text.count(mark) for mark in _MARKS) >= _MANY_MARKS:
        line = first_line_below(text, MOST_DEPTH)
        if line is not None:
            raise ForeignTextError(f"lists or mappings more than {MOST_DEPTH} deep in line {line}")
    if "*" in text:
        _check_aliases(text)


def _check_aliases(text: str) -> None:
    written_out = 0
    # What each anchor costs, and the open collections' anchors and costs so far.
    costs: dict[str, int] = {}
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
