"""Find in an event's description how many people come, and with what: `people: 120`.

Editors write the description as text or as HTML, or both. The time that a description takes grows
with its length alone.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from typing import Final

# A line that begins with one of our words; more of them may follow on it.
_OUR_LINE: Final = re.compile(
    r"^[ \t*•·-]*(?=(?:people|image|set)[ \t]*:)(.*)$", re.IGNORECASE | re.MULTILINE
)
_OURS: Final = re.compile(r"(?:^|(?<=[ \t]))(people|image|set)[ \t]*:[ \t]*(\S+)", re.IGNORECASE)
# HTML: what isn't shown, what ends a line, and other tags.
_HIDDEN: Final = re.compile(r"<(head|style|script|title)\b|<(!--)", re.IGNORECASE)
_BREAK: Final = re.compile(
    r"</?(?:address|article|blockquote|br|dd|div|dl|dt|h[1-6]|hr|li|ol|p|pre|section|table|td|th|tr|ul)\b[^<>]*>",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"</?[a-z!][^<>]*>", re.IGNORECASE)
# Spaces of other kinds, and marks without a width, which editors insert.
_SPACES: Final = {
    0xA0: " ",
    0x2007: " ",
    0x202F: " ",
    0x200B: None,
    0x200E: None,
    0x2060: None,
    0xFEFF: None,
}


def read_descriptions(texts: Iterable[str]) -> Mapping[str, str]:
    """What descriptions say under people, image and set; of each word the first counts."""
    said: dict[str, str] = {}
    for text in texts:
        for line in _OUR_LINE.findall(_plain(text)):
            for word, value in _OURS.findall(line):
                said.setdefault(word.lower(), value.rstrip(",;."))
    return said


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
