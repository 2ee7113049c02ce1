"""Read which placeholder sets headroom scales, and what books room, from release.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from roost.controllers.contract.bookings import BookingSettings
from roost.controllers.contract.release import ReleaseDocument
from roost_core.objects.pod import Pod
from roost_core.release.placeholder_sets import PlaceholderSet


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomSettings:
    """What headroom reads of release.json."""

    sets: tuple[PlaceholderSet, ...] = ()
    # Names of the sets with windows or `learn`; of all sets if events can be booked. The other sets
    # keep the values' number, or what a quota leaves of it.
    scaled: frozenset[str] = frozenset()
    # None: no events can be booked.
    events: BookingSettings | None = None
    # The ConfigMap with what was learned; its keys are names of sets.
    history_name: str = ""
    # Whether a pod is a user's, by its labels and those of its namespace, as a Snapshot has them.
    is_user: Callable[[Pod, Mapping[str, Mapping[str, str]] | None], bool]
    # Whether a pod is of a user of another hub that shares the nodes.
    is_neighbour: Callable[[Pod], bool] = lambda _pod: False
    # Whether other hubs share the nodes, so that their placeholders count.
    shares_nodes: bool = False
    # The namespaces of users, by the labels that a Snapshot has; None: not all of them are known.
    users_namespaces: Callable[[Mapping[str, Mapping[str, str]] | None], frozenset[str] | None]


def read_headroom(release: ReleaseDocument) -> HeadroomSettings | None:
    """Read release.json; None if there is no set."""
    can_book = release.events is not None
    sets = release.placeholder_sets
    if not sets:
        return None
    return HeadroomSettings(
        sets=sets,
        scaled=frozenset(
            placeholder_set.name
            for placeholder_set in sets
            if can_book or placeholder_set.windows or placeholder_set.learn is not None
        ),
        events=release.events,
        history_name=release.history_name,
        is_user=release.is_users,
        is_neighbour=release.is_neighbours,
        shares_nodes=release.shared_namespaces is not None,
        users_namespaces=release.users_namespaces,
    )
