"""The small integers that the table phase holds in place of words: it has most of all rows.

They are stored, so a code never changes its meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from roost_lab.recorder.store.records import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

PHASE_CODES: Final[Mapping[str, int]] = {
    Phase.CREATED: 1,
    Phase.GATED: 2,
    Phase.UNGATED: 3,
    Phase.UNSCHEDULABLE: 4,
    Phase.NOMINATED: 5,
    Phase.SCHEDULED: 6,
    Phase.ACCEPTED: 7,
    Phase.PULLED: 8,
    Phase.INITIALIZED: 9,
    Phase.STARTED: 10,
    Phase.READY: 11,
    Phase.TERMINATING: 12,
    Phase.GONE: 13,
}
SOURCE_CODES: Final[Mapping[str, int]] = {"pod": 1, "event": 2, "watch": 3, "sniffer": 4, "audit": 5}


class Coded(sa.types.TypeDecorator[str]):
    """Words that are stored as small integers. A word without a code is NULL, which no such column accepts."""

    impl = sa.SmallInteger
    cache_ok = True

    def __init__(self, codes: Mapping[str, int]) -> None:
        super().__init__()
        # Pairs can be hashed: SQLAlchemy caches statements by them.
        self.codes = tuple(codes.items())
        self._codes = dict(codes)
        self._words = {code: str(word) for word, code in codes.items()}

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> int | None:  # noqa: ARG002 - the library's
        """The code of a word."""
        return None if value is None else self._codes.get(value)

    def process_result_value(self, value: int | None, dialect: sa.Dialect) -> str | None:  # noqa: ARG002 - likewise
        """The word of a code."""
        return None if value is None else self._words[value]


def words(column: str, codes: Mapping[str, int]) -> str:
    """SQL that turns the codes of a column back into words."""
    cases = " ".join(f"WHEN {code} THEN '{word}'" for word, code in codes.items())
    return f"CASE {column} {cases} END"


def codes_of(column: str, codes: Mapping[str, int]) -> str:
    """SQL that turns the words of a column into codes."""
    cases = " ".join(f"WHEN '{word}' THEN {code}" for word, code in codes.items())
    return f"CASE {column} {cases} END"
