"""Shorten names so that they fit and can still be told apart. Pure.

Names of nodes and images share long beginnings and ends, such as gke-cluster-pool- and
.eu-west-1.compute.internal: what all have in common goes first, then the middle of what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from os.path import commonprefix
from typing import Final

ELLIPSIS: Final = "…"
# Shorter names can't be told apart.
LEAST_LENGTH: Final = 8
# Characters; fewer are hardly more than the ellipsis in their place.
_WORTH_LEAVING_OUT: Final = 4
_SEPARATORS: Final = frozenset("-._/:@ ")


def shorten(names: Iterable[str], length: int) -> dict[str, str]:
    """Name -> a text of at most `length` characters; no two are equal. Names stay whole if all fit.

    length: LEAST_LENGTH at least. An image is shortened to its last part first, if no other has it.
    """
    distinct = list(dict.fromkeys(names))
    texts = distinct
    for strip in (_last_parts, _without_common_ends, _without_common_beginnings):
        if all(len(text) <= length for text in texts):
            break
        texts = strip(texts)
    return dict(zip(distinct, _told_apart(texts, length), strict=True))


def _last_parts(texts: Sequence[str]) -> list[str]:
    last_parts = [text.rpartition("/")[2] or text for text in texts]
    counts = Counter(last_parts)
    return [
        last if counts[last] == 1 else text for text, last in zip(texts, last_parts, strict=True)
    ]


def _without_common_beginnings(texts: Sequence[str]) -> list[str]:
    common = _common_beginning(texts)
    return [
        ELLIPSIS + text[len(common) :]
        if common and text.startswith(common) and text != common
        else text
        for text in texts
    ]


def _without_common_ends(texts: Sequence[str]) -> list[str]:
    # With the separator that precedes it; what is left never ends in one.
    common = _common_beginning([text[::-1] for text in texts])[::-1]
    return [
        text[: -len(common)] + ELLIPSIS
        if common and text.endswith(common) and text != common
        else text
        for text in texts
    ]


def _common_beginning(texts: Sequence[str]) -> str:
    """What most of the texts begin with, up to a separator; "" if that is nothing.

    One name of another kind, such as a virtual node's, doesn't change it.
    """
    first_parts = Counter(_first_part(text) for text in texts)
    part, number = max(first_parts.items(), key=lambda item: item[1], default=("", 0))
    if not part or number < 2 or 2 * number <= len(texts):
        return ""
    common = commonprefix([text for text in texts if text.startswith(part)])  # noqa: RUF071 - these are no paths
    end = max((index + 1 for index, char in enumerate(common) if char in _SEPARATORS), default=0)
    return common[:end] if end >= _WORTH_LEAVING_OUT else ""


def _first_part(text: str) -> str:
    return text[: next((index + 1 for index, char in enumerate(text) if char in _SEPARATORS), 0)]


def _told_apart(texts: Sequence[str], length: int) -> list[str]:
    """The texts cut to the length, and numbered where they are equal then."""
    short: dict[str, None] = {}
    for text in texts:
        cut = _cut_middle(text, length)
        number = 1
        distinct = cut
        while distinct in short:
            number += 1
            distinct = f"{cut[: length - len(str(number)) - 1]}~{number}"
        short[distinct] = None
    return list(short)


def _cut_middle(text: str, length: int) -> str:
    """The beginning and, twice as long, the end: names of one kind mostly differ there."""
    if len(text) <= length:
        return text
    begin = (length - 1) // 3
    return text[:begin] + ELLIPSIS + text[begin + 1 - length :]
