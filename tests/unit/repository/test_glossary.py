"""The glossary: few words, each told once and used."""

import re
import subprocess
from typing import Final

from tools.root import ROOT

# An idea that needs another word takes the place of one that is there.
MOST_WORDS: Final = 40


def glossary() -> list[str]:
    """The words that it explains, in its order."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\*\*.+?) \| ", text, re.MULTILINE)
    return [word for row in rows for word in re.findall(r"\*\*([^*]+)\*\*", row)]


def test_the_glossary_has_few_words_each_once_and_begins_with_an_operators() -> None:
    words = glossary()
    assert words[:3] == ["user", "build", "placeholder"]
    assert len(words) <= MOST_WORDS
    assert len(words) == len(set(words))


def test_each_word_of_the_glossary_is_used() -> None:
    for word in glossary():
        found = subprocess.run(
            ["git", "grep", "-liw", word, "--", "*.md", "*.py", ":!docs/glossary.md"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.stdout, f"{word}: nothing uses it. Take it out."
