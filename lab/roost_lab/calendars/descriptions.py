"""Find in an event's description how many people come, and with what: `people: 120`.

Editors write the description as text or as HTML, or both. The time that a description takes grows
with its length alone.

The words are `people`, `image` and `set`. A colon belongs behind each. Editors also write other
signs: colons of other scripts, equals signs, dashes, arrows, or no sign at all. Such values are
found too, so that the reader of the calendar can refuse them with a message (`lacks_colon`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from typing import Final

_PEOPLE: Final = "people"
_COLONS: Final = r"[:\uff1a\ufe13\ufe30\ufe55\u2236\ua789\u02d0\u05c3\u0589]"
_OTHER_SIGN: Final = r"[^\w\s,.;!?'\"()\[\]{}]{1,3}"
# Another sign than a colon counts only before a number, no sign only before a number that ends the
# line: otherwise `people` is a word of the editor's text.
_PEOPLE_PATTERN: Final = (
    rf"people[ \t]*(?:{_COLONS}|{_OTHER_SIGN}(?=[ \t]*\d)|(?<=[ \t])(?=\d+[ \t]*$))"
)
# An equals sign counts only before a single name that ends the line.
_NAMED_PATTERN: Final = rf"(?:image|set)[ \t]*(?:{_COLONS}|[=\uff1d](?=[ \t]*[\w./:@-]+[ \t]*$))"
_WORD_PATTERN: Final = f"(?:{_PEOPLE_PATTERN}|{_NAMED_PATTERN})"
_FLAGS: Final = re.IGNORECASE | re.MULTILINE
# What an item of a list may begin with.
_BULLETS: Final = r"^(?:[ \t#+*•·▪◦‣\u2013\u2014-]|\d{1,2}[.)][ \t])*"
# A line that begins with one of the words; more of them may follow on it.
_LINE_WITH_WORDS: Final = re.compile(rf"{_BULLETS}(?={_WORD_PATTERN})(.*)$", _FLAGS)
# A word in such a line, with the sign behind it.
_WORD: Final = re.compile(rf"(?:^|(?<=[ \t]))({_WORD_PATTERN})", re.IGNORECASE)
# The word `people` and its number in two cells of a table, without a sign.
_TWO_CELLS: Final = re.compile(rf"{_BULLETS}people[ \t]*\n\s*(\d+)[ \t]*$", _FLAGS)
_LETTERS: Final = re.compile("[a-z]+", re.IGNORECASE)
# How `_words` marks a value without a colon.
_NOT_A_COLON: Final = re.compile(rf"(?:{_COLONS}|{_OTHER_SIGN})? ")
# A number alone in the next cell of a table, or on the next line.
_NUMBER_BELOW: Final = re.compile(r"\s*([0-9]+)[ \t]*(?:\n|$)")
# HTML: the beginning of what isn't shown, the tags that end a line, and all tags.
_HIDDEN: Final = re.compile(r"<(head|style|script|title)\b|<(!--)", re.IGNORECASE)
_BREAK: Final = re.compile(
    r"</?(?:address|article|blockquote|br|dd|div|dl|dt|h[1-6]|hr|li|ol|p|pre|section|table|td|th|tr|ul)\b[^<>]*>",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"</?[a-z!][^<>]*>", re.IGNORECASE)
# Editors insert spaces of other kinds, which become plain spaces, and characters without a width,
# which go.
_SPACES: Final[Mapping[int, str | None]] = {
    **dict.fromkeys((0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
    **dict.fromkeys((0x200B, 0x200E, 0x2060, 0xFEFF), None),
}


def read_descriptions(texts: Iterable[str]) -> Mapping[str, str]:
    """Word -> what the descriptions of one event say behind it. The words: people, image, set.

    texts: plain text or HTML. The first value of a word counts; a word that isn't there has no key.
    A faulty value is given as it is, for the caller to refuse: `1 200`, or one that `lacks_colon`.
    `people` without any number is "".
    """
    values: dict[str, str] = {}
    has_people_without_number = False
    for text in texts:
        plain = _plain_text(text)
        for line in _LINE_WITH_WORDS.finditer(plain):
            words = _words(line[1])
            if words[-1] == (_PEOPLE, ""):
                number = _NUMBER_BELOW.match(plain, line.end())
                words[-1] = (_PEOPLE, number[1] if number else "")
            for word, value in words:
                if value:
                    values.setdefault(word, value)
                elif word == _PEOPLE:
                    has_people_without_number = True
        without_sign = _TWO_CELLS.search(plain)
        if without_sign is not None:
            # The space marks that there was no colon, as in `_words`.
            values.setdefault(_PEOPLE, f" {without_sign[1]}")
    if has_people_without_number:
        values.setdefault(_PEOPLE, "")
    return values


def lacks_colon(people: str) -> bool:
    """Whether another sign than a colon, or none, was behind the word people.

    people: the value of `people` that `read_descriptions` gave.
    """
    return _NOT_A_COLON.match(people) is not None


def _words(line: str) -> list[tuple[str, str]]:
    """The words of a line, at least one, each with its value.

    A value without a colon is marked: it begins with its sign and a space.
    """
    matches = list(_WORD.finditer(line))
    ends = [match.start() for match in matches[1:]]
    words: list[tuple[str, str]] = []
    for match, end in zip(matches, [*ends, len(line)], strict=True):
        word_and_sign = match[1]
        word = _LETTERS.match(word_and_sign)[0].lower()  # type: ignore[index]  # it begins with letters
        sign = word_and_sign[len(word) :].strip()
        value = line[match.end() : end].strip()
        if word == _PEOPLE:
            value = _number(value)
        if sign != ":":
            value = f"{sign} {value}"
        words.append((word, value.rstrip(",;.")))
    return words


def _number(text: str) -> str:
    """The number that a text begins with: of `120 students` "120", of `1 200` both parts."""
    parts = text.split(maxsplit=2)
    if len(parts) > 1 and parts[0].isdecimal() and parts[1][0].isdecimal():
        return " ".join(parts[:2])
    return parts[0] if parts else ""


def _plain_text(text: str) -> str:
    """The text of a description that may be HTML."""
    if "<" in text:
        text = _BREAK.sub("\n", _without_hidden(text))
        text = _TAG.sub("", text)
    if "&" in text:
        text = html.unescape(text)
    return text.translate(_SPACES)


def _without_hidden(text: str) -> str:
    """HTML without what browsers don't show: comments, styles, scripts and titles."""
    parts: list[str] = []
    begin = 0
    hidden = _HIDDEN.search(text)
    while hidden is not None:
        parts.append(text[begin : hidden.start()])
        closing = "-->" if hidden[2] else f"</{hidden[1]}[^<>]*>"
        end = re.compile(closing, re.IGNORECASE).search(text, hidden.end())
        begin = len(text) if end is None else end.end()
        hidden = _HIDDEN.search(text, begin)
    return "".join([*parts, text[begin:]])
