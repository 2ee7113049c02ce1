"""The check of the documentation's prose finds what makes a reader stop, and leaves code alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.check_prose import BANNED, Limits, faults, pages, sentences


def found(text: str, limits: Limits | None = None) -> list[str]:
    return [fault for _, fault in faults(text, limits or Limits())]


@given(st.integers(1, 80))
def test_a_sentence_has_35_words_at_most(words: int) -> None:
    text = " ".join(["word"] * words) + "."
    assert bool(found(f"# Page\n\n{text}\n")) is (words > 35)


@given(st.lists(st.integers(1, 35), min_size=1, max_size=9))
def test_sentences_are_told_apart(lengths: list[int]) -> None:
    text = " ".join(" ".join(["Word"] * length) + "." for length in lengths)
    assert [sentence.words() for sentence in sentences(text)] == lengths


@pytest.mark.parametrize(
    "text",
    [
        "```sh\n" + "word " * 40 + "\n```",
        "Run `" + "word " * 40 + "`.",
        "[Link](" + "a" * 300 + ").",
        "Version 1.36 of Kubernetes.",
        "# " + "word " * 40,
        "| a | b |\n|---|---|\n| " + "Word word. " * 20 + " | x |",
        "The docs of Kubernetes such as these. Which of its nodes?",
    ],
)
def test_code_headings_and_short_sentences_are_fine(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "- " + "word " * 40,
        "> " + "word " * 40,
        "| a | b |\n|---|---|\n| " + "word " * 40 + " | x |",
        "**Bold " + "word " * 40 + "**",
    ],
)
def test_a_long_sentence_is_found_wherever_it_stands(text: str) -> None:
    [fault] = found(text)
    assert "words, at most 35" in fault


@pytest.mark.parametrize(
    "sentence",
    [
        "Such nodes wait.",
        "It stands beside the hub.",
        "It has a scheduler of its own.",
        "The old ones go.",
        "Take this one.",
        "Each one that waits.",
        "A user whom it befell.",
    ],
)
def test_a_banned_word_is_named_with_what_to_write(sentence: str) -> None:
    [fault] = found(sentence)
    assert "Write " in fault


def test_a_chain_of_figures_belongs_in_a_table() -> None:
    assert found("It took 1 s, 2 s, 3 s, 4 s and 5 s.")
    assert not found("| 1 s, 2 s, 3 s, 4 s, 5 s |\n|---|\n")


def test_a_page_of_long_sentences_is_found_by_its_median() -> None:
    text = ("Word " + "word " * 23 + "word. ") * 10
    assert found(text) == [
        "half of its sentences have 25 words or more, at most 20. Say one fact a sentence."
    ]


def test_a_fault_has_the_line_of_its_paragraph() -> None:
    text = "# Page\n\nFine.\n\n- Fine.\n- Such nodes wait.\n"
    assert [line for line, _ in faults(text, Limits())] == [6]


def test_every_banned_word_says_what_to_write() -> None:
    assert all(instead for instead in BANNED.values())


def test_readme_and_all_folders_of_pages_are_read() -> None:
    folders = {page.parent.name for page in pages()}
    assert {"docs", "how-to", "tutorials", "decisions", "chart"} <= folders
