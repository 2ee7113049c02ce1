"""Check that the documentation can be read once: short sentences, and no words that make a reader
stop.

.venv/bin/python -m tools.check_prose            exit 1 and name each fault with its line
.venv/bin/python -m tools.check_prose --words    the words of each page

A sentence is one of a paragraph, of an item of a list, or of a cell of a table. Code isn't text: a
span of code counts as one word. The rules are for readers of a second language. A page may have
any number of words: writers met a limit by packing several facts into a sentence. No ready-made
checker is used: vale downloads a program at its first run, and `make check` needs no network.
"""

from __future__ import annotations

import re
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from markdown_it import MarkdownIt

from tools.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

# Of words. A reader of a second language loses the beginning of a longer sentence.
LONGEST_SENTENCE: Final = 35
# Of words: half of a page's sentences are shorter.
LONGEST_MEDIAN: Final = 20
# The median of fewer sentences says nothing.
FEWEST_SENTENCES: Final = 10
# Figures in a sentence. More are a table.
MOST_FIGURES: Final = 4
# What stands in the place of code and of a figure, for the count of words.
CODE: Final = "code"

# What is banned, and what to write in its place.
BANNED: Final[dict[str, str]] = {
    r"\bones\b": "name the thing",
    r"\b(?:the|this|that|each|every|another|which|no|own|other|first|last|new|old) one\b"
    r"(?=[.,;:)]| (?:that|which|who|whose|is|isn't|was|has|can|may|will|does|from|with|in)\b)": (
        "name the thing"
    ),
    r"\bof (?:its|their|your|our) own\b": "say whose it is, or leave it out",
    r"\bsuch\b(?! as\b)": "name the thing, or 'like this'",
    r"\bbeside\b(?!-)": "'next to', 'with' or 'besides'",
    r"\bbefell\b|\bbefalls?\b": "'happened to', or the user as subject",
    r"\boftener\b": "'more often'",
    r"\bfor want of\b": "'because there is no'",
    r"\blest\b": "'so that … not'",
    r"\b(?:thereby|thereof|therein|wherein|whereby|hence|henceforth|hitherto|albeit)\b": (
        "a plain word: 'so', 'in it', 'until now'"
    ),
    r"\bthe (?:former|latter)\b": "name it again",
    r"\brespectively\b": "two sentences, or a table",
    r"\b(?:utili[sz]e|leverage)\b": "'use'",
    r"\bin order to\b": "'to'",
    r"\b(?:simply|obviously|of course|basically)\b": "leave it out",
    r"\b(?:e\.g\.|i\.e\.|etc\.)": "'for example', 'that is', or the whole list",
    r"\bcome to pass\b|\bcomes of it\b": "'happen', 'result'",
    r"\b(?:at|to) the most of\b": "'most'",
    r"\bby and by\b": "'after some time'",
    r"\bit is well\b|\bis all well\b": "'healthy'",
}

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[)\"'”]*\s+(?=\S)")
_ABBREVIATION: Final = re.compile(r"\b(?:vs|cf|No|Dr|approx|min|max)\.$")
_WORD: Final = re.compile(r"[^\W_](?:[\w'./%-]*\w)?%?")
# A figure with what makes it one: a digit that isn't part of a name such as v1.36 or node-3.
_FIGURE: Final = re.compile(r"(?<![\w.#/-])\d[\d,.:]*(?![\w/-])")


class Limits(NamedTuple):
    """What a page may have: see the constants above."""

    sentence: int = LONGEST_SENTENCE
    median: int = LONGEST_MEDIAN
    figures: int = MOST_FIGURES


# Decisions weigh figures, and have few readers.
OF_DECISIONS: Final = Limits(figures=9)


class Sentence(NamedTuple):
    """A sentence, and the line of the page on which its paragraph or row begins."""

    text: str
    line: int
    is_cell: bool

    def words(self) -> int:
        """How many words it has; code is one word."""
        return len(_WORD.findall(self.text))


def pages() -> list[Path]:
    """What is read by users."""
    folders = (ROOT / "docs", ROOT / "lab" / "docs")
    return [
        ROOT / "README.md",
        ROOT / "chart" / "README.md",
        *(page for folder in folders for page in sorted(folder.rglob("*.md"))),
    ]


def limits_of(page: Path) -> Limits:
    """The limits that hold for a page."""
    return OF_DECISIONS if page.parent.name == "decisions" else Limits()


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a page's prose, in its order; headings and code have none."""
    is_cell = is_heading = False
    line = 1
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.map is not None:
            line = token.map[0] + 1
        if token.type in ("th_open", "td_open"):
            is_cell = True
        elif token.type in ("th_close", "td_close"):
            is_cell = False
        elif token.type in ("heading_open", "heading_close"):
            is_heading = token.type == "heading_open"
        elif token.type == "inline" and not is_heading:
            yield from (Sentence(part, line, is_cell) for part in split(prose(token)))


def prose(token: Token) -> str:
    """The text of a paragraph, an item or a cell, as it is read aloud."""
    parts = []
    for child in token.children or []:
        if child.type == "text":
            parts.append(child.content)
        elif child.type == "code_inline":
            parts.append(CODE)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif child.type == "html_inline" and child.content.startswith("<br"):
            parts.append(". ")
    return "".join(parts)


def split(text: str) -> Iterator[str]:
    """The sentences of a text."""
    begin = 0
    for end in _SENTENCE_END.finditer(text):
        if _ABBREVIATION.search(text[begin : end.start()]):
            continue
        yield text[begin : end.start()].strip()
        begin = end.end()
    if rest := text[begin:].strip():
        yield rest


def faults(text: str, limits: Limits) -> Iterator[tuple[int, str]]:
    """What is wrong with a page: the line, and what to do."""
    counts = []
    for sentence in sentences(text):
        words = sentence.words()
        counts += [words] if words else []
        begin = " ".join(sentence.text.split()[:6])
        if words > limits.sentence:
            yield (
                sentence.line,
                f'"{begin} …": {words} words, at most {limits.sentence}. Make two sentences of it.',
            )
        figures = len(_FIGURE.findall(sentence.text))
        if figures > limits.figures and not sentence.is_cell:
            yield (
                sentence.line,
                f'"{begin} …": {figures} figures, at most {limits.figures}. Make a table of it.',
            )
        for pattern, instead in BANNED.items():
            if found := re.search(pattern, sentence.text, re.IGNORECASE):
                yield sentence.line, f'"{begin} …": "{found[0]}". Write {instead}.'
    if len(counts) >= FEWEST_SENTENCES and statistics.median(counts) > limits.median:
        half = f"half of its sentences have {statistics.median(counts):g} words or more"
        yield 1, f"{half}, at most {limits.median}. Say one fact a sentence."


def main(arguments: list[str]) -> int:
    """0: the pages can be read; 1: a fault is named; 2: wrong usage."""
    if arguments == ["--words"]:
        counted = {page: len(page.read_text(encoding="utf-8").split()) for page in pages()}
        for page, words in counted.items():
            print(f"{words:6} {page.relative_to(ROOT)}")
        print(f"{sum(counted.values()):6} in all")
        return 0
    if arguments:
        print("usage: python -m tools.check_prose [--words]", file=sys.stderr)
        return 2
    is_faulty = False
    for page in pages():
        for line, fault in faults(page.read_text(encoding="utf-8"), limits_of(page)):
            print(f"{page.relative_to(ROOT)}:{line}: {fault}", file=sys.stderr)
            is_faulty = True
    return int(is_faulty)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
