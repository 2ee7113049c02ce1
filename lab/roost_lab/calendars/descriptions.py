"""Find in an event's description how many people come, and with what: `people: 120`.

Editors write the description as text or as HTML, or both. The time that a description takes grows
with its length alone.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from typing import Final

# Other signs than a colon are found to be told: colons of other scripts, equals signs, dashes,
# arrows, or none. They count where a number alone is behind them, or one name: `people =` is else a
# text of another kind.
_COLONS: Final = r"[:\uff1a\ufe13\ufe30\ufe55\u2236\ua789\u02d0\u05c3\u0589]"
_OTHER_SIGN: Final = r"[^\w\s,.;!?'\"()\[\]{}]{1,3}"
_PEOPLE: Final = rf"people[ \t]*(?:{_COLONS}|{_OTHER_SIGN}(?=[ \t]*\d)|(?<=[ \t])(?=\d+[ \t]*$))"
_NAMED: Final = rf"(?:image|set)[ \t]*(?:{_COLONS}|[=\uff1d](?=[ \t]*[\w./:@-]+[ \t]*$))"
_WORD: Final = f"(?:{_PEOPLE}|{_NAMED})"
_FLAGS: Final = re.IGNORECASE | re.MULTILINE
# What lists begin their lines with.
_BULLETS: Final = r"^(?:[ \t#+*•·▪◦‣\u2013\u2014-]|\d{1,2}[.)][ \t])*"
# A line that begins with one of our words; more of them may follow on it.
_OUR_LINE: Final = re.compile(rf"{_BULLETS}(?={_WORD})(.*)$", _FLAGS)
_OURS: Final = re.compile(rf"(?:^|(?<=[ \t]))({_WORD})", re.IGNORECASE)
# The word and its number in two cells of a table, without a sign.
_TWO_CELLS: Final = re.compile(rf"{_BULLETS}people[ \t]*\n\s*(\d+)[ \t]*$", _FLAGS)
_NAME: Final = re.compile("[a-z]+", re.IGNORECASE)
_NOT_A_COLON: Final = re.compile(rf"(?:{_COLONS}|{_OTHER_SIGN})? ")
# The cell of a table, or the line, behind a word.
_NEXT: Final = re.compile(r"\s*([0-9]+)[ \t]*(?:\n|$)")
# HTML: what isn't shown, what ends a line, and other tags.
_HIDDEN: Final = re.compile(r"<(head|style|script|title)\b|<(!--)", re.IGNORECASE)
_BREAK: Final = re.compile(
    r"</?(?:address|article|blockquote|br|dd|div|dl|dt|h[1-6]|hr|li|ol|p|pre|section|table|td|th|tr|ul)\b[^<>]*>",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"</?[a-z!][^<>]*>", re.IGNORECASE)
# Spaces of other kinds, and marks without a width, which editors insert.
_SPACES: Final[Mapping[int, str | None]] = {
    **dict.fromkeys((0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
    **dict.fromkeys((0x200B, 0x200E, 0x2060, 0xFEFF), None),
}


def read_descriptions(texts: Iterable[str]) -> Mapping[str, str]:
    """What descriptions say under people, image and set; of each word the first counts.

    What is said wrongly is a value that nobody accepts: `1 200`, "" for people without a number, or
    one that `lacks_colon`.
    """
    values: dict[str, str] = {}
    is_empty = False
    for text in texts:
        plain = _plain(text)
        for line in _OUR_LINE.finditer(plain):
            words = _words(line[1])
            if words[-1] == ("people", ""):
                following = _NEXT.match(plain, line.end())
                words[-1] = ("people", following[1] if following else "")
            for word, value in words:
                if value:
                    values.setdefault(word, value)
                elif word == "people":
                    is_empty = True
        without_sign = _TWO_CELLS.search(plain)
        if without_sign is not None:
            values.setdefault("people", f" {without_sign[1]}")
    if is_empty:
        values.setdefault("people", "")
    return values


def lacks_colon(people: str) -> bool:
    """Whether another sign than a colon, or none, was behind the word people."""
    return _NOT_A_COLON.match(people) is not None


def _words(line: str) -> list[tuple[str, str]]:
    """Our words of a line, one or more, and what it says behind each."""
    matches = list(_OURS.finditer(line))
    ends = [word.start() for word in matches[1:]]
    words: list[tuple[str, str]] = []
    for word, end in zip(matches, [*ends, len(line)], strict=True):
        name = _NAME.match(word[1])[0].lower()  # type: ignore[index]  # each begins with a name
        sign = word[1][len(name) :].strip()
        value = line[word.end() : end].strip()
        if name == "people":
            value = _number(value)
        if sign != ":":
            # A space shows that it isn't part of what is said.
            value = f"{sign} {value}"
        words.append((name, value.rstrip(",;.")))
    return words


def _number(text: str) -> str:
    """The first word, as of `120 students`; of `1 200` both."""
    words = text.split(maxsplit=2)
    if len(words) > 1 and words[0].isdecimal() and words[1][0].isdecimal():
        return " ".join(words[:2])
    return words[0] if words else ""


def _plain(text: str) -> str:
    """The text of a description that may be HTML."""
    if "<" in text:
        text = _TAG.sub("", _BREAK.sub("\n", _shown(text)))
    return (html.unescape(text) if "&" in text else text).translate(_SPACES)


def _shown(text: str) -> str:
    """HTML without what isn't shown."""
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
