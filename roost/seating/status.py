"""A text about each subject: logged when it changes, and shown by /readyz without users' names."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import NamedTuple

log = logging.getLogger(__name__)


class _Text(NamedTuple):
    logged: str
    # Without users' names, because anybody may read /readyz.
    shown: str


class Status:
    """The texts of all subjects. `shown` may be called from any thread."""

    def __init__(self) -> None:
        self._texts: dict[str, _Text] = {}

    def say(self, subject: str, text: str, shown: str = "") -> None:
        """Set the text of a subject, and log it if it changed. "": forget the subject.

        shown: what /readyz shows instead, without users' names.
        """
        before = self._texts.get(subject)
        if not text:
            self._texts.pop(subject, None)
            return
        self._texts[subject] = _Text(text, shown or text)
        if before is None or before.logged != text:
            log.info("%s", text)

    def drop_others(self, prefix: str, subjects: Collection[str]) -> None:
        """Forget the subjects that begin with `prefix`, except `subjects`."""
        for subject in list(self._texts):
            if subject.startswith(prefix) and subject not in subjects:
                del self._texts[subject]

    def shown(self) -> list[str]:
        """The texts that /readyz shows."""
        return [text.shown for text in list(self._texts.values())]
