"""How many placeholders ResourceQuotas leave room for, so that nobody is refused because of them.

A quota counts a pod when it is created. A placeholder that exists takes room of the quota, and a
user's pod that was refused can't pre-empt it. So placeholders get what others leave, less what
people who may come will need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, Protocol

from roost.controllers.contract.snapshot import Snapshot, StatefulSetState
from roost.controllers.headroom.settings import HeadroomSettings
from roost_core.objects.pod import Pod
from roost_core.objects.quotas import (
    AT_ONCE,
    COUNT_PODS,
    PRIORITY_CLASS,
    ContainerDefaults,
    Counted,
    Quota,
    amount_in_words,
    counted_container,
    counted_pod,
)
from roost_core.placement.labels import OWN_INSTANCE_LABEL, PLACEHOLDER_SET_LABEL


class Demand(NamedTuple):
    """What one set asks for, before quotas are looked at."""

    name: str
    # Placeholders, and people who may come to the release's namespace.
    replicas: int
    people: int
    # What one of its placeholders asks for, as written: `requests` and `limits`.
    resources: Mapping[str, Mapping[str, object]]
    priority_class: str


class Cut(NamedTuple):
    """What a quota leaves of a demand."""

    replicas: int
    # In words, for an operator: what is in the way, and what to ask for.
    why: str


class _Tight(NamedTuple):
    """One key of a quota that leaves too little."""

    room: int
    why: str


class PeopleRoom(NamedTuple):
    """How many more people the quotas of a hub's namespace let in."""

    people: int
    # The quota that lets in fewest, in words: which, what it allows, and both as one reason.
    quota: str
    allows: str
    why: str
    # The key of it that does; how much of the key is taken once these people are in; and how much
    # one more person takes at least.
    key: str
    taken: int
    per_person: int

    def why_and_ask(self, more: int) -> str:
        """`why`, and what to ask for so that so many more people are let in."""
        enough = amount_in_words(self.key, self.taken + more * self.per_person)
        return f"{self.why}; for all people ask for {enough}"


class CutElsewhere(NamedTuple):
    """Placeholders of one set for people whom quotas of hubs' namespaces keep out."""

    placeholders: int
    # How many people the tightest quota lets in.
    people: int
    # That quota, in words, and what to ask for.
    why: str


def joint_cut(before: CutElsewhere | None, more: CutElsewhere) -> CutElsewhere:
    """Both cuts of one set, with the reason of the tighter one."""
    if before is None:
        return more
    tighter = more if more.people < before.people else before
    return tighter._replace(placeholders=before.placeholders + more.placeholders)


def rooms_for_people(
    namespaces: Iterable[str], snapshot: Snapshot, settings: HeadroomSettings
) -> dict[str, PeopleRoom]:
    """How many more people quotas let into each of these namespaces; without those that may take
    any number.

    Placeholders for more would wait for people who can't come. So a person counts as no larger than
    the smallest user there, or the smallest placeholder: who can come always has one.
    """
    placeholders = [
        counted_container({"requests": placeholder_set.requests})
        for placeholder_set in settings.sets
    ]
    by_namespace: dict[str, list[Quota]] = {namespace: [] for namespace in namespaces}
    for _, quota in sorted((snapshot.quotas or {}).items()):
        if quota.namespace in by_namespace:
            by_namespace[quota.namespace].append(quota)
    rooms: dict[str, PeopleRoom] = {}
    for namespace, quotas in by_namespace.items():
        if not quotas:
            continue
        pods = _NamespacePods(snapshot, settings, namespace)
        for quota in quotas:
            for key, hard in quota.hard.items():
                per_person = pods.least_per_person(quota, key, placeholders)
                if not per_person:
                    continue
                taken = pods.taken_by_others(quota, key)
                people = max(0, hard - taken) // per_person
                if namespace not in rooms or people < rooms[namespace].people:
                    name = f"ResourceQuota {quota.name} of namespace {namespace}"
                    allows = f"{amount_in_words(key, hard)} {key}"
                    rooms[namespace] = PeopleRoom(
                        people,
                        name,
                        allows,
                        f"{name} lets in: it allows {allows}",
                        key,
                        taken + people * per_person,
                        per_person,
                    )
    return rooms


def room_of_all(snapshot: Snapshot, settings: HeadroomSettings) -> PeopleRoom | None:
    """How many more people quotas let into all namespaces of users together; None: any number, or
    the users' are the release's own, of which `cut_by_quotas` knows more.
    """
    namespaces = settings.users_namespaces(snapshot.namespaces)
    if not namespaces or namespaces == {snapshot.namespace}:
        return None
    rooms = rooms_for_people(namespaces, snapshot, settings)
    if rooms.keys() != namespaces:
        return None
    tightest = min(rooms.values(), key=attrgetter("people"))
    if len(rooms) == 1:
        return tightest
    return tightest._replace(
        people=sum(room.people for room in rooms.values()),
        why=(
            f"ResourceQuotas of {len(rooms)} namespaces let in: the tightest, {tightest.quota},"
            f" allows {tightest.allows}"
        ),
    )


def cut_by_quotas(
    demands: Sequence[Demand], snapshot: Snapshot, settings: HeadroomSettings
) -> dict[str, Cut]:
    """Return what quotas of the release's namespace leave of each demand, where that is less."""
    quotas = [
        quota
        for _, quota in sorted((snapshot.quotas or {}).items())
        if quota.namespace == snapshot.namespace
    ]
    if not quotas:
        return {}
    defaults = tuple(snapshot.container_defaults.values())
    return cut_by(demands, quotas, defaults, _NamespacePods(snapshot, settings, snapshot.namespace))


def cut_by(
    demands: Sequence[Demand],
    quotas: Iterable[Quota],
    defaults: Sequence[ContainerDefaults],
    use: QuotaUse,
) -> dict[str, Cut]:
    """Return what quotas of one namespace leave of each demand, where that is less.

    defaults: what LimitRanges there give containers.
    """
    placeholders = {
        demand.name: counted_container(
            demand.resources, defaults, priority_class=demand.priority_class
        )
        for demand in demands
    }
    cuts: dict[str, Cut] = {}
    for quota in quotas:
        counted = [demand for demand in demands if quota.counts(placeholders[demand.name])]
        for key in quota.hard:
            tight = _tight(quota, key, counted, placeholders, use)
            if tight is None:
                continue
            asked = _sum(counted, placeholders, key)
            for demand in counted:
                if not placeholders[demand.name].amount(key):
                    continue
                replicas = demand.replicas * tight.room // asked
                before = cuts.get(demand.name)
                if before is None or replicas < before.replicas:
                    cuts[demand.name] = Cut(replicas, tight.why)
    return cuts


def counts_placeholders(snapshot: Snapshot) -> bool:
    """Whether the release's namespace has a quota; it may count placeholders."""
    return any(quota.namespace == snapshot.namespace for quota in (snapshot.quotas or {}).values())


def demand_of(
    name: str,
    stateful_set: StatefulSetState | None,
    requests: Mapping[str, object],
    *,
    replicas: int,
    people: int,
) -> Demand:
    """What a set asks for. requests: of its entry in release.json, where its StatefulSet doesn't
    say.
    """
    resources: Mapping[str, Mapping[str, object]] = {"requests": requests}
    priority_class = ""
    if stateful_set is not None:
        resources = stateful_set.resources or resources
        priority_class = stateful_set.priority_class
    return Demand(name, replicas, people, resources, priority_class)


class QuotaUse(Protocol):
    """What is known of who takes a quota's room."""

    def taken_by_others(self, quota: Quota, key: str) -> int:
        """How much of the key all but our placeholders take."""
        ...

    def per_person(self, quota: Quota, key: str, placeholders: Sequence[Counted]) -> int:
        """How much of the key one more person takes; 0: the quota doesn't count users."""
        ...


class UseByStatus:
    """What a quota's own status says: placeholders that are there count as others."""

    def taken_by_others(self, quota: Quota, key: str) -> int:
        """How much of the key is used."""
        return quota.used.get(key, 0)

    def per_person(self, quota: Quota, key: str, placeholders: Sequence[Counted]) -> int:
        """How much a placeholder takes, unless the quota counts placeholders alone."""
        if not _may_count_users(quota, placeholders):
            return 0
        return max(placeholder.amount(key) for placeholder in placeholders)


class _NamespacePods:
    """The pods of one namespace, as quotas count them."""

    def __init__(self, snapshot: Snapshot, settings: HeadroomSettings, namespace: str) -> None:
        self.users: list[Counted] = []
        # Users' too; without our placeholders.
        self.others: list[Counted] = []
        self.finished: list[Counted] = []
        self.placeholders: list[Counted] = []
        for pod in snapshot.pods.values():
            if pod.namespace != namespace:
                continue
            counted = counted_pod(pod)
            if _is_own_placeholder(pod, snapshot.release):
                self.placeholders.append(counted)
            elif pod.is_finished:
                self.finished.append(counted)
            else:
                self.others.append(counted)
                if settings.is_user(pod, snapshot.namespaces):
                    self.users.append(counted)

    def taken_by_others(self, quota: Quota, key: str) -> int:
        """How much of the key all but our placeholders take."""
        if key != COUNT_PODS:
            return _amount(self.others, quota, key)
        by_pods = _amount([*self.others, *self.finished], quota, key)
        # Others' finished pods aren't watched, but counted.
        by_others = quota.used.get(key, 0) - _amount(self.placeholders, quota, key)
        return max(by_pods, by_others)

    def per_person(self, quota: Quota, key: str, placeholders: Sequence[Counted]) -> int:
        """How much of the key one more person takes: as those who are there, or as a placeholder;
        0: the quota doesn't count users.
        """
        users = [user for user in self.users if quota.counts(user)]
        if not users and (self.users or not _may_count_users(quota, placeholders)):
            return 0
        amounts = [placeholder.amount(key) for placeholder in placeholders]
        if users:
            amounts.append(-(-sum(user.amount(key) for user in users) // len(users)))
        return max(amounts)

    def least_per_person(self, quota: Quota, key: str, placeholders: Sequence[Counted]) -> int:
        """How much of the key one more person takes at least; 0: it isn't known, or nothing."""
        counted = [user for user in self.users or placeholders if quota.counts(user)]
        if not counted:
            return 0
        return min(container.amount(key) for container in (*counted, *placeholders))


def _is_own_placeholder(pod: Pod, release: str) -> bool:
    return PLACEHOLDER_SET_LABEL in pod.labels and pod.labels.get(OWN_INSTANCE_LABEL) == release


def _amount(pods: Iterable[Counted], quota: Quota, key: str) -> int:
    return sum(pod.amount(key) for pod in pods if quota.counts(pod))


def _may_count_users(quota: Quota, placeholders: Sequence[Counted]) -> bool:
    """Whether a quota that counts such placeholders may count users, too, of whom none is there."""
    own_classes = {placeholder.priority_class for placeholder in placeholders}
    return not any(
        scope.name == PRIORITY_CLASS and scope.operator == "In" and scope.values <= own_classes
        for scope in quota.scopes
    )


def _sum(demands: Sequence[Demand], placeholders: Mapping[str, Counted], key: str) -> int:
    return sum(demand.replicas * placeholders[demand.name].amount(key) for demand in demands)


def _tight(
    quota: Quota,
    key: str,
    demands: Sequence[Demand],
    placeholders: Mapping[str, Counted],
    use: QuotaUse,
) -> _Tight | None:
    """What a key leaves for placeholders; None: enough for all."""
    asked = _sum(demands, placeholders, key)
    if not asked:
        return None
    hard = quota.hard[key]
    taken = use.taken_by_others(quota, key)
    people = max(AT_ONCE, sum(demand.people for demand in demands))
    per_person = use.per_person(quota, key, [placeholders[demand.name] for demand in demands])
    room = max(0, hard - taken - people * per_person)
    if room >= asked:
        return None
    come = f", and {people} people may come" if per_person else ""
    why = (
        f"ResourceQuota {quota.name} allows {amount_in_words(key, hard)} {key}, others take"
        f" {amount_in_words(key, taken)}{come}; for all placeholders ask for"
        f" {amount_in_words(key, taken + people * per_person + asked)}"
    )
    return _Tight(room, why)
