"""Remember where this replica recently sent builds, until the facts show them.

Without it a burst would be invisible: thirty builds within the watch's delay would all see an idle
node. Time is an argument.

Anyone who can reach the webhook can post reviews of pods that are never created. So a decision
counts for a few seconds only; and while more decisions turn out false than true, none counts, and
only existing pods affect where homes are.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import Final

from roost_core.placement.beliefs import REVIEWED, REVIEWED_UNSEEN
from webhook.facts.homes import Homes
from webhook.facts.placed_pod import PlacedPod

# False decisions less true ones, from which on no decision counts. Builds leave a home from
# MIN_LOAD builds on, so fewer do no harm.
MAX_DOUBT: Final = 4.0
# Half-life of the doubt.
DOUBT_HALF_LIFE_SECONDS: Final = 300.0
# An upper bound: even after a flood decisions count again within some 40 minutes, or as soon as
# pods are created.
_DOUBT_CEILING: Final = 1024.0
_MAX_DECISIONS: Final = 4096

# Not valid in a name. Before it: what the API server generates the name from; after it: the
# request's uid.
_UNNAMED: Final = "#"
# Characters that the API server appends to `generateName`, and how much of that it uses.
# Source: k8s.io/apiserver/pkg/storage/names.
_GENERATED: Final = 5
_MAX_GENERATE_NAME: Final = 58


def unnamed(generate_name: str, uid: str) -> str:
    """Stand-in for the name of a pod whose name is yet to be made; `uid` (the request's) keeps such
    pods apart.
    """
    return f"{generate_name[:_MAX_GENERATE_NAME]}{_UNNAMED}{uid}"


class Ledger:
    """The last decisions by pod, counted by class and node. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Oldest first.
        self._decisions: OrderedDict[str, tuple[float, PlacedPod]] = OrderedDict()
        self._loads: Counter[PlacedPod] = Counter()
        self._totals: Counter[str] = Counter()
        # Pods that the watch has shown, and since which facts.
        self._seen: dict[str, int] = {}
        # The facts that the decisions were last compared with, by identity.
        self._shown: Homes | None = None
        self._doubt = 0.0
        # When the doubt last faded.
        self._faded_at = 0.0

    @property
    def is_trusted(self) -> bool:
        """Whether decisions count: not while too many of the last ones turned out false."""
        return self._doubt < MAX_DOUBT

    def record(self, key: str, pod: PlacedPod, now: float) -> None:
        """Remember a decision.

        A pod decided on again (its POST was repeated) counts once, at its last target.
        """
        with self._lock:
            self._drop(key)
            self._decisions[key] = (now, pod)
            self._loads[pod] += 1
            self._totals[pod.pod_class] += 1
            while len(self._decisions) > _MAX_DECISIONS:
                self._refute(next(iter(self._decisions)))

    def follow(self, homes: Homes, now: float, *, is_current: bool = True) -> None:
        """Forget what `homes` shows by now, and what is too old.

        is_current: `homes` is up to date with the cluster, so what it doesn't show doesn't exist.
        """
        self._fade(now)
        if not self._decisions:
            self._shown = homes
            return
        oldest = now - (REVIEWED if is_current else REVIEWED_UNSEEN).age_seconds
        with self._lock:
            # True decisions first: this may be the first review for a while.
            for key in [key for key, since in self._seen.items() if since <= homes.made]:
                self._confirm(key)
            if homes is not self._shown:
                for key in [key for key in self._decisions if key in homes.pods]:
                    self._confirm(key)
                self._drop_generated(homes)
                self._shown = homes
            while self._decisions:
                key, (at, _) = next(iter(self._decisions.items()))
                if at > oldest:
                    break
                if is_current:
                    self._refute(key)
                else:
                    self._drop(key)

    def load(self, pod: PlacedPod) -> int:
        """Decisions for this class and node, as far as they count."""
        return self._loads[pod] if self.is_trusted else 0

    def total(self, pod_class: str) -> int:
        """Decisions for this class, as far as they count."""
        return self._totals[pod_class] if self.is_trusted else 0

    def decision(self, key: str) -> PlacedPod | None:
        """The decision on one pod, when it counts."""
        entry = self._decisions.get(key) if self.is_trusted else None
        return entry[1] if entry is not None else None

    def see(self, key: str, homes: Homes) -> None:
        """Note that the watch has shown this pod, even if it is gone again by now, and that `homes`
        counts that.

        The decision counts on in a review that has begun with earlier facts.
        """
        with self._lock:
            if key in self._decisions:
                self._seen[key] = homes.made

    def _fade(self, now: float) -> None:
        """Let the doubt decay."""
        if self._doubt:
            self._doubt *= 0.5 ** (max(0.0, now - self._faded_at) / DOUBT_HALF_LIFE_SECONDS)
        self._faded_at = now

    def _confirm(self, key: str) -> None:
        if self._drop(key):
            self._doubt = max(0.0, self._doubt - 1)

    def _refute(self, key: str) -> None:
        if self._drop(key):
            self._doubt = min(_DOUBT_CEILING, self._doubt + 1)

    def _drop_generated(self, homes: Homes) -> None:
        """Forget decisions on pods without a name, the oldest first, for pods that are new and got
        such a name.
        """
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
                self._confirm(waiting.pop(0))

    def _drop(self, key: str) -> bool:
        self._seen.pop(key, None)
        if (entry := self._decisions.pop(key, None)) is None:
            return False
        pod = entry[1]
        self._totals[pod.pod_class] -= 1
        if self._loads[pod] > 1:
            self._loads[pod] -= 1
        else:
            del self._loads[pod]
        return True
