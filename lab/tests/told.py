"""Stories in text files: what happened, a thing a line, and what is said of it. data/README.md
tells how they look.
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND

# Characters of what was said, beside a failure.
MOST_SHOWN: Final = 4000
_DATA: Final = Path(__file__).parent / "data"
_UNITS: Final = {"us": 1, "ms": 1000, "s": SECOND, "min": MINUTE, "h": HOUR}
_SPAN: Final = re.compile(r"([+-]?)(\d+(?:\.\d+)?)(us|ms|s|min|h)")
_SPANS: Final = re.compile(rf"(T?)((?:{_SPAN.pattern})+)")
_NAMED: Final = re.compile(r"([\w-]+)=(.*)", re.DOTALL)


class Thing(NamedTuple):
    """A line of a story: `KIND VALUE … KEY=VALUE …`."""

    kind: str
    plain: tuple[Any, ...]
    named: dict[str, Any]


@dataclass
class Story:
    """What happened, and the lines about what is said of it, by their sign."""

    title: str
    # What is asked about, if the title ends with it.
    about: str
    things: list[Thing] = field(default_factory=list)
    said: dict[str, list[str]] = field(default_factory=lambda: {">": [], "~": [], "!": []})

    def check(self, text: str) -> None:
        """`>`: a line of the text; `~`: a part of it; `!`: no part of it."""
        lines, shown = text.splitlines(), text[:MOST_SHOWN]
        assert [one for one in self.said[">"] if one not in lines] == [], shown
        assert [one for one in self.said["~"] if one not in text] == [], shown
        assert [one for one in self.said["!"] if one in text] == [], shown

    def check_drawn(self, lines: Iterable[str]) -> None:
        """Likewise; and of each kind of line, its first word, that `>` tells of there are no
        others, in this order.
        """
        text = "\n".join(lines)
        kinds = {line.split()[0] for line in self.said[">"]}
        found = [line for line in text.splitlines() if line.partition(" ")[0] in kinds]
        assert found == self.said[">"], "\n".join(found)
        self.check(text)


def value_of(word: str) -> Any:
    """`T+1h-2s`: so long after BEGIN, in µs; `90s`: so many µs; else as JSON, or a text."""
    if word == "T":
        return BEGIN
    if found := _SPANS.fullmatch(word):
        parts = ((float(sign + number), unit) for sign, number, unit in _SPAN.findall(found[2]))
        return (BEGIN if found[1] else 0) + round(
            sum(number * _UNITS[unit] for number, unit in parts)
        )
    try:
        return json.loads(word)
    except ValueError:
        return word


def thing_of(line: str) -> Thing:
    kind, *words = shlex.split(line)
    found = [(word, _NAMED.fullmatch(word)) for word in words]
    plain = tuple(value_of(word) for word, named in found if named is None)
    return Thing(
        kind, plain, {named[1]: value_of(named[2]) for _, named in found if named is not None}
    )


def read_stories(name: str) -> Iterator[Story]:
    """Those of a file in `data`."""
    story: Story | None = None
    for line in (_DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not line.startswith(" "):
            if story is not None:
                yield story
            title, _, about = line.partition(": ")
            story = Story(title, about)
            continue
        assert story is not None, f"{name}.txt begins without a story"
        if text[0] in story.said:
            story.said[text[0]].append(text[2:])
        else:
            story.things.append(thing_of(text))
    if story is not None:
        yield story


def stories(name: str, kinds: str = "") -> pytest.MarkDecorator:
    """A test's argument `story`: each of those in a file. kinds: of things that there may be, where
    any would pass.
    """
    found = list(read_stories(name))
    unknown = {thing.kind for story in found for thing in story.things} - {*kinds.split()}
    assert not kinds or not unknown, f"{name}.txt: found {unknown}, expected {kinds}"
    return pytest.mark.parametrize("story", [pytest.param(one, id=one.title) for one in found])


def cases(file: str, table: str) -> list[Any]:
    """The rows of a table in a file of `data/cases`, for `pytest.mark.parametrize`."""
    tables = yaml.safe_load((_DATA / "cases" / f"{file}.yaml").read_text(encoding="utf-8"))
    return [tuple(row) if isinstance(row, list) else row for row in tables[table]]
