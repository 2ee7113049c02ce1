"""Remember where this replica sent builds lately, until the facts show them.

Without it a burst is invisible: thirty builds within the watch's delay would all see an idle node. Time is an argument.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhook.facts import HomePod, Homes

# A watch shows a new pod within a second or so; what it never shows was refused after this webhook had spoken.
EXPIRY_SECONDS: Final = 30.0
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

    def __init__(self, expiry_seconds: float = EXPIRY_SECONDS) -> None:
        self._expiry_seconds = expiry_seconds
        self._lock = threading.Lock()
        # Oldest first.
        self._decisions: OrderedDict[str, tuple[float, HomePod]] = OrderedDict()
        self._loads: Counter[HomePod] = Counter()
        self._totals: Counter[str] = Counter()
        # The facts that the decisions were last held against: recognised by identity.
        self._shown: Homes | None = None

    def record(self, key: str, pod: HomePod, now: float) -> None:
        """Remember a decision. A pod decided on again (its POST was repeated) counts once, at its last target."""
        with self._lock:
            self._drop(key)
            self._decisions[key] = (now, pod)
            self._loads[pod] += 1
            self._totals[pod.pod_class] += 1
            while len(self._decisions) > _MAX_DECISIONS:
                self._drop(next(iter(self._decisions)))

    def follow(self, homes: Homes, now: float) -> None:
        """Forget what `homes` shows by now, and what is too old."""
        if not self._decisions:
            self._shown = homes
            return
        oldest = now - self._expiry_seconds
        with self._lock:
            while self._decisions:
                key, (at, _) = next(iter(self._decisions.items()))
                if at > oldest:
                    break
                self._drop(key)
            if homes is not self._shown:
                for key in [key for key in self._decisions if key in homes.pods]:
                    self._drop(key)
                self._drop_generated(homes)
                self._shown = homes

    def load(self, pod: HomePod) -> int:
        """Decisions for this class and node."""
        return self._loads[pod]

    def total(self, pod_class: str) -> int:
        """Decisions for this class."""
        return self._totals[pod_class]

    def decision(self, key: str) -> HomePod | None:
        """The decision on one pod."""
        found = self._decisions.get(key)
        return found[1] if found is not None else None

    def forget(self, key: str) -> None:
        """Drop the decision on a pod that the watch has shown, even if it is gone again by now."""
        if self._decisions:
            with self._lock:
                self._drop(key)

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
                self._drop(waiting.pop(0))

    def _drop(self, key: str) -> None:
        found = self._decisions.pop(key, None)
        if found is None:
            return
        pod = found[1]
        self._totals[pod.pod_class] -= 1
        if self._loads[pod] > 1:
            self._loads[pod] -= 1
        else:
            del self._loads[pod]
