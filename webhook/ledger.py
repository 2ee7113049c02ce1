"""Remember where this replica sent builds lately, until the facts show them.

Without it a burst is invisible: thirty builds within the watch's delay would all see an idle node. Time is an argument.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhook.facts import HomePod, Homes

# A watch shows a new pod within a second or so; what it never shows was refused after this webhook had spoken.
EXPIRY_SECONDS: Final = 30.0
_MAX_DECISIONS: Final = 4096


class Ledger:
    """The last decisions by pod, the newest last. Safe to use from several threads."""

    def __init__(self, expiry_seconds: float = EXPIRY_SECONDS) -> None:
        self._expiry_seconds = expiry_seconds
        self._lock = threading.Lock()
        self._decisions: OrderedDict[str, tuple[float, HomePod]] = OrderedDict()

    def record(self, key: str, pod: HomePod, now: float) -> None:
        """Remember a decision. A pod decided on again (its POST was repeated) counts once, at its last target."""
        with self._lock:
            self._decisions.pop(key, None)
            self._decisions[key] = (now, pod)
            while len(self._decisions) > _MAX_DECISIONS:
                self._decisions.popitem(last=False)

    def unseen(self, homes: Homes, now: float) -> list[tuple[str, HomePod]]:
        """Decisions that `homes` doesn't show yet, with their pods' keys; forgets the others, and those too old."""
        if not self._decisions:
            return []
        oldest = now - self._expiry_seconds
        with self._lock:
            gone = [key for key, (at, _) in self._decisions.items() if at <= oldest or key in homes.pods]
            for key in gone:
                del self._decisions[key]
            return [(key, pod) for key, (_, pod) in self._decisions.items()]

    def forget(self, key: str) -> None:
        """Drop the decision on a pod that the watch has shown, even if it is gone again by now."""
        if self._decisions:
            with self._lock:
                self._decisions.pop(key, None)
