"""Shorten names so that they fit a length and stay different. Pure.

Names of nodes and images share long beginnings and ends, such as gke-cluster-pool- and
.eu-west-1.compute.internal. What they have in common is left out first, then the middle of what
remains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from os.path import commonprefix
from typing import Final

ELLIPSIS: Final = "…"
# The least number of characters at which shortened names can still differ.
LEAST_LENGTH: Final = 8
# Fewer common characters stay: the ellipsis in their place would save hardly any.
_LEAST_COMMON: Final = 4
_SEPARATORS: Final = frozenset("-._/:@ ")


def shorten(names: Iterable[str], length: int) -> dict[str, str]:
    """Name -> its shortened text. No two texts are equal. If all names fit, they stay as they are.

    length: the most characters of a text; LEAST_LENGTH at least.
    """
    distinct = list(dict.fromkeys(names))
    texts = distinct
    for shorten_all in (_last_parts, _without_common_ends, _without_common_beginnings):
        if all(len(text) <= length for text in texts):
            break
        texts = shorten_all(texts)
    return dict(zip(distinct, _made_different(texts, length), strict=True))


def _last_parts(texts: Sequence[str]) -> list[str]:
    """Images without registry and path, where no other image has the same last part."""
    last_parts = [text.rpartition("/")[2] or text for text in texts]
    counts = Counter(last_parts)
    return [
        last if counts[last] == 1 else text for text, last in zip(texts, last_parts, strict=True)
    ]


def _without_common_beginnings(texts: Sequence[str]) -> list[str]:
    common = _common_beginning(texts)
    if not common:
        return list(texts)
    shortened = []
    for text in texts:
        rest = text.removeprefix(common)
        shortened.append(ELLIPSIS + rest if rest and rest != text else text)
    return shortened


def _without_common_ends(texts: Sequence[str]) -> list[str]:
    # The common end includes the separator before it, so that no text is left with one at its end.
    common = _common_beginning([text[::-1] for text in texts])[::-1]
    if not common:
        return list(texts)
    shortened = []
    for text in texts:
        rest = text.removesuffix(common)
        shortened.append(rest + ELLIPSIS if rest and rest != text else text)
    return shortened


def _common_beginning(texts: Sequence[str]) -> str:
    """What most of the texts begin with, up to and with a separator; "" if that is too little.

    A few names of another kind, such as a virtual node's, don't change it.
    """
    first_parts = Counter(_first_part(text) for text in texts)
    part, number = max(first_parts.items(), key=lambda item: item[1], default=("", 0))
    if not part or number < 2 or 2 * number <= len(texts):
        return ""
    common = commonprefix([text for text in texts if text.startswith(part)])  # noqa: RUF071 - these are no paths
    ends = [index + 1 for index, char in enumerate(common) if char in _SEPARATORS]
    end = max(ends, default=0)
    return common[:end] if end >= _LEAST_COMMON else ""


def _first_part(text: str) -> str:
    """A text up to and with its first separator; "" if it has none."""
    for index, char in enumerate(text):
        if char in _SEPARATORS:
            return text[: index + 1]
    return ""


def _made_different(texts: Sequence[str], length: int) -> list[str]:
    """The texts cut to the length. Of equal ones, all but the first get a number: `name~2`."""
    # A dict, for its order and its fast look-up; it has no values.
    different: dict[str, None] = {}
    for text in texts:
        cut = _cut_middle(text, length)
        number = 1
        candidate = cut
        while candidate in different:
            number += 1
            candidate = f"{cut[: length - len(str(number)) - 1]}~{number}"
        different[candidate] = None
    return list(different)


def _cut_middle(text: str, length: int) -> str:
    """The beginning of a text and twice as much of its end, where similar names mostly differ."""
    if len(text) <= length:
        return text
    begin_length = (length - 1) // 3
    end_length = length - 1 - begin_length
    return text[:begin_length] + ELLIPSIS + text[-end_length:]
