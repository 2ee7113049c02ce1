"""Remember where this replica sent builds lately, until the facts show them.

Without it a burst is invisible: thirty builds within the watch's delay would all see an idle node. Time is an argument.

Anyone who reaches the webhook can post a review of a pod that never comes. So a decision counts for a few seconds only,
and while more of them come to nothing than come true, none counts: then only pods that exist move a home.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhook.rules.facts import HomePod, Homes

# A watch shows a new pod within a second or so; what it never shows was refused after this webhook had spoken, or made
# up.
CONFIRM_SECONDS: Final = 5.0
# The same while the watch is known to be broken: it will show what came meanwhile.
EXPIRY_SECONDS: Final = 30.0
# Decisions that came to nothing, less those that came true, from which on no decision counts. A home is left from four
# builds on (`minLoad`), so fewer do no harm.
MAX_DOUBT: Final = 4.0
# Half of the doubt is gone after so long.
DOUBT_HALF_LIFE_SECONDS: Final = 300.0
# More isn't remembered: even after a flood decisions count again within some 40 minutes, or as soon as pods come.
_DOUBT_CEILING: Final = 1024.0
_MAX_DECISIONS: Final = 4096

# No name holds it: what stands before is what the API server makes a name of, what follows is the request's id.
_UNNAMED: Final = "#"
# Characters that the API server puts behind `generateName`, and how much of that it takes.
# Source: k8s.io/apiserver/pkg/storage/names.
_GENERATED: Final = 5
_MAX_GENERATE_NAME: Final = 58


def unnamed(generate_name: str, uid: str) -> str:
    """Stand-in for the name of a pod whose name is yet to be made; `uid` (the request's) keeps such pods apart."""
    return f"{generate_name[:_MAX_GENERATE_NAME]}{_UNNAMED}{uid}"


class Ledger:
    """The last decisions by pod, counted by class and node. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Oldest first.
        self._decisions: OrderedDict[str, tuple[float, HomePod]] = OrderedDict()
        self._loads: Counter[HomePod] = Counter()
        self._totals: Counter[str] = Counter()
        # The facts that the decisions were last held against: recognised by identity.
        self._shown: Homes | None = None
        self._doubt = 0.0
        # When the doubt last faded.
        self._faded_at = 0.0

    @property
    def is_trusted(self) -> bool:
        """Whether decisions count: not while too many of the last ones came to nothing."""
        return self._doubt < MAX_DOUBT

    def record(self, key: str, pod: HomePod, now: float) -> None:
        """Remember a decision. A pod decided on again (its POST was repeated) counts once, at its last target."""
        with self._lock:
            self._drop(key)
            self._decisions[key] = (now, pod)
            self._loads[pod] += 1
            self._totals[pod.pod_class] += 1
            while len(self._decisions) > _MAX_DECISIONS:
                self._came_to_nothing(next(iter(self._decisions)))

    def follow(self, homes: Homes, now: float, *, is_current: bool = True) -> None:
        """Forget what `homes` shows by now, and what is too old.

        is_current: `homes` is kept in step with the cluster, so what it doesn't show isn't there.
        """
        self._fade(now)
        if not self._decisions:
            self._shown = homes
            return
        oldest = now - (CONFIRM_SECONDS if is_current else EXPIRY_SECONDS)
        with self._lock:
            # First what came true: a review may be the first for a while.
            if homes is not self._shown:
                for key in [key for key in self._decisions if key in homes.pods]:
                    self._came_true(key)
                self._drop_generated(homes)
                self._shown = homes
            while self._decisions:
                key, (at, _) = next(iter(self._decisions.items()))
                if at > oldest:
                    break
                if is_current:
                    self._came_to_nothing(key)
                else:
                    self._drop(key)

    def load(self, pod: HomePod) -> int:
        """Decisions for this class and node, as far as they count."""
        return self._loads[pod] if self.is_trusted else 0

    def total(self, pod_class: str) -> int:
        """Decisions for this class, as far as they count."""
        return self._totals[pod_class] if self.is_trusted else 0

    def decision(self, key: str) -> HomePod | None:
        """The decision on one pod, when it counts."""
        found = self._decisions.get(key) if self.is_trusted else None
        return found[1] if found is not None else None

    def forget(self, key: str) -> None:
        """Drop the decision on a pod that the watch has shown, even if it is gone again by now."""
        if self._decisions:
            with self._lock:
                self._came_true(key)

    def _fade(self, now: float) -> None:
        """Let old doubts go."""
        if self._doubt:
            self._doubt *= 0.5 ** (max(0.0, now - self._faded_at) / DOUBT_HALF_LIFE_SECONDS)
        self._faded_at = now

    def _came_true(self, key: str) -> None:
        if self._drop(key):
            self._doubt = max(0.0, self._doubt - 1)

    def _came_to_nothing(self, key: str) -> None:
        if self._drop(key):
            self._doubt = min(_DOUBT_CEILING, self._doubt + 1)

    def _drop_generated(self, homes: Homes) -> None:
        """Forget decisions on pods without a name, the oldest first, for pods that are new and got such a name."""
        nameless: dict[str, list[str]] = {}
        for key in self._decisions:
            start, mark, _ = key.partition(_UNNAMED)
            if mark:
                nameless.setdefault(start, []).append(key)
        if not nameless:
            return
        known = self._shown.pods if self._shown is not None else {}
        for name in homes.pods:
            waiting = nameless.get(name[:-_GENERATED])
            if waiting and name not in known:
                self._came_true(waiting.pop(0))

    def _drop(self, key: str) -> bool:
        found = self._decisions.pop(key, None)
        if found is None:
            return False
        pod = found[1]
        self._totals[pod.pod_class] -= 1
        if self._loads[pod] > 1:
            self._loads[pod] -= 1
        else:
            del self._loads[pod]
        return True
