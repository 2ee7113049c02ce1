"""See what users a set's nodes have, and what room is left there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from typing import Final, NamedTuple

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.headroom.settings import HeadroomSettings
from roost_core.objects.leaving_taints import ANY_LEAVING_TAINTS
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import CPU, MEMORY, PODS
from roost_core.objects.selectors import NodeRules, node_matches, untolerated
from roost_core.placement.headroom_history import size_in_placeholders
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL
from roost_core.release.placeholder_sets import PlaceholderSet

# Taints that come and go with a node's state; they don't change whose node it is.
_STATE_TAINTS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class PoolUser(NamedTuple):
    """A user of the set's nodes."""

    # Unix time.
    created: float
    # In placeholders.
    size: float
    # "": it waits.
    node: str
    # Since when no node has room for it; None: it has one, or wasn't tried yet.
    waits_since: float | None
    # Its containers run.
    runs: bool


@dataclass(frozen=True, slots=True)
class PoolView:
    """What is seen of a set's users and nodes at one time."""

    # By name.
    nodes: Mapping[str, Node]
    # By key of the pod; those who wait for a node of the set, too.
    users: Mapping[str, PoolUser]
    # How many of the set's placeholders all users would fill.
    level: float
    # How many placeholders fit on nodes that users keep.
    room: int
    # How many fit on the other nodes.
    spare: int
    # How many fit an empty node; 0: there is no node.
    per_node: int
    # Since when each pod has waited for a node, placeholders and users. Who is larger than an empty
    # node is left out.
    waiting_since: tuple[float, ...]
    # Nodes with none but DaemonSets' pods.
    empty: frozenset[str]
    # Nodes that only placeholders keep, and that might not be there without learning: some
    # placeholder there is of a set that learns, or of another hub that shares the nodes.
    kept_by_learning: frozenset[str]
    # Nodes that others keep, such as builds or placeholders of a set with other nodes: no business
    # of this set.
    of_others: frozenset[str]
    # CPU and memory of the largest node that was seen; 0: none was.
    roomiest: tuple[int, int]
    # The set's placeholders that are on nodes.
    placeholders: int = 0
    # Users who take seats of other hubs or other sets that share the nodes; else as `users`.
    neighbours: Mapping[str, PoolUser] = field(default_factory=dict)
    # Other hubs' placeholders on these nodes, measured in the set's.
    placeholders_of_neighbours: float = 0.0
    # The same of the release's other sets that learn on these nodes.
    placeholders_of_sets: float = 0.0
    # The same of the release's other sets that don't learn: they are there anyway. Those that wait
    # for a node count, too.
    placeholders_there_anyway: float = 0.0

    @property
    def share(self) -> float | None:
        """The set's share of all that users and placeholders take; None: there are none."""
        own = self.level + self.placeholders
        of_neighbours = sum(user.size for user in self.neighbours.values())
        others = of_neighbours + self.placeholders_of_neighbours + self.placeholders_of_sets
        return own / (own + others) if own + others else None


@dataclass(slots=True)
class _NodePods:
    """What a node's pods request, and whose they are."""

    # By resource; placeholders count in neither.
    by_users: dict[str, int] = field(default_factory=lambda: {PODS: 0})
    by_others: dict[str, int] = field(default_factory=lambda: {PODS: 0})
    # Of the set, or of another hub or set that shares the nodes.
    has_users: bool = False
    # Whether it has users, also those who take seats of a set with other nodes.
    keeps_users: bool = False
    # As `has_users`.
    has_placeholders: bool = False
    # Those of sets that learn, and of other hubs.
    has_learned_placeholders: bool = False
    # Others' pods, as builds and placeholders of a set with other nodes; none that each node has.
    has_others: bool = False


class _PoolPods(NamedTuple):
    """The pods on a set's nodes, and those that wait for them."""

    by_node: Mapping[str, _NodePods]
    # By key: pods of users who take the set's seats.
    users: Mapping[str, Pod]
    # The same of other hubs and sets that share the nodes.
    neighbours: Mapping[str, Pod]
    # Since when each of the set's placeholders has waited for a node.
    placeholders_wait_since: list[float]
    # How many of them are on nodes.
    placeholders: int
    # On nodes: placeholders of other hubs that share them.
    placeholders_of_neighbours: list[Pod]
    # On nodes: placeholders of the release's other sets that share them and learn.
    placeholders_of_sets: list[Pod]
    # On nodes or waiting: placeholders of the other sets that share them, and don't learn.
    placeholders_there_anyway: list[Pod]

    def nodes_with(self, *, users: bool, placeholders: bool, others: bool) -> frozenset[str]:
        """Names of nodes whose pods are just these users', placeholders and others."""
        wanted = (users, placeholders, others)
        return frozenset(
            name
            for name, pods in self.by_node.items()
            if (pods.has_users, pods.has_placeholders, pods.has_others) == wanted
        )


def see_pool(
    placeholder_set: PlaceholderSet,
    snapshot: Snapshot,
    settings: HeadroomSettings,
    last: PoolView | None,
    takes_seat: Callable[[Pod, str], bool] = lambda _pod, _set_name: True,
    *,
    others: Sequence[PlaceholderSet] = (),
) -> PoolView:
    """See what users of the set there are, and what its nodes have left. last: what was seen
    before.

    takes_seat: whether a user there takes a seat of the set of that name, and no other set's.
    others: the release's other sets that use the same nodes.
    """
    nodes = {
        name: node
        for name, node in snapshot.nodes.items()
        if is_of_set(placeholder_set.rules, node)
    }
    asked = asked_by_placeholder(placeholder_set)
    roomiest = _roomiest(nodes) or (last.roomiest if last is not None else (0, 0))
    pods = _pods_of_pool(placeholder_set, snapshot, settings, nodes, takes_seat, others=others)
    users = _users(pods.users, asked, roomiest)
    rooms = {
        name: _room(node, asked, pods.by_node[name].by_users, pods.by_node[name].by_others)
        for name, node in nodes.items()
    }
    room = sum(free for name, free in rooms.items() if pods.by_node[name].keeps_users)
    per_node = max(
        (_room(node, asked, pods.by_node[name].by_others) for name, node in nodes.items()),
        default=0,
    )
    users_wait_since = [
        user.waits_since
        for user in users.values()
        if user.waits_since is not None and (not per_node or user.size <= per_node)
    ]
    kept = pods.nodes_with(users=False, placeholders=True, others=False)
    return PoolView(
        nodes=nodes,
        users=users,
        level=sum(user.size for user in users.values()),
        room=room,
        spare=sum(rooms.values()) - room,
        per_node=per_node,
        waiting_since=(*pods.placeholders_wait_since, *users_wait_since),
        empty=pods.nodes_with(users=False, placeholders=False, others=False),
        kept_by_learning=frozenset(
            name for name in kept if pods.by_node[name].has_learned_placeholders
        ),
        of_others=pods.nodes_with(users=False, placeholders=False, others=True),
        roomiest=roomiest,
        placeholders=pods.placeholders,
        neighbours=_users(pods.neighbours, asked, roomiest),
        placeholders_of_neighbours=sum(
            _size(pod.spec.requests, asked, roomiest) for pod in pods.placeholders_of_neighbours
        ),
        placeholders_of_sets=sum(
            _size(pod.spec.requests, asked, roomiest) for pod in pods.placeholders_of_sets
        ),
        placeholders_there_anyway=sum(
            _size(pod.spec.requests, asked, roomiest) for pod in pods.placeholders_there_anyway
        ),
    )


def seats_of_others(
    seats: Mapping[str, int],
    placeholder_set: PlaceholderSet,
    others: Sequence[PlaceholderSet],
    view: PoolView,
) -> float:
    """What other sets keep without learning, in placeholders of the set, as `view` sees it.

    seats: how many each set would keep without learning, by name. They count for sets that learn.
    Of a set that doesn't, the placeholders that are there count: a quota may have refused others.
    """
    asked = asked_by_placeholder(placeholder_set)
    of_learning_sets = sum(
        seats[other.name] * _size(asked_by_placeholder(other).items(), asked, view.roomiest)
        for other in others
        if other.learn is not None
    )
    return of_learning_sets + view.placeholders_there_anyway


def _pods_of_pool(
    placeholder_set: PlaceholderSet,
    snapshot: Snapshot,
    settings: HeadroomSettings,
    nodes: Mapping[str, Node],
    takes_seat: Callable[[Pod, str], bool],
    *,
    others: Sequence[PlaceholderSet],
) -> _PoolPods:
    by_node = {name: _NodePods() for name in nodes}
    users: dict[str, Pod] = {}
    neighbours: dict[str, Pod] = {}
    placeholders_wait_since: list[float] = []
    placeholders = 0
    placeholders_of_neighbours: list[Pod] = []
    placeholders_of_sets: list[Pod] = []
    placeholders_there_anyway: list[Pod] = []
    names = {other.name for other in others}
    learning = {other.name for other in others if other.learn is not None}
    not_learning = names - learning
    waits_here: dict[PodSpec, bool] = {}
    for key, pod in snapshot.pods.items():
        on_node = by_node.get(pod.node_name)
        if pod.is_finished or (pod.node_name and on_node is None):
            continue
        set_name = pod.labels.get(PLACEHOLDER_SET_LABEL)
        if set_name is not None:
            # Another hub's set may have the same name.
            is_hubs = pod.namespace == snapshot.namespace
            is_own = is_hubs and set_name == placeholder_set.name
            is_neighbours = settings.shares_nodes and not is_hubs
            is_of_learning_set = is_hubs and set_name in learning
            is_there_anyway = is_hubs and set_name in not_learning
            may_be_learned = is_own or is_neighbours or is_of_learning_set
            if is_there_anyway:
                placeholders_there_anyway.append(pod)
            if on_node is not None:
                on_node.has_placeholders |= may_be_learned or is_there_anyway
                on_node.has_learned_placeholders |= may_be_learned
                on_node.has_others |= not may_be_learned and not is_there_anyway
                placeholders += is_own
                if is_neighbours:
                    placeholders_of_neighbours.append(pod)
                elif is_of_learning_set:
                    placeholders_of_sets.append(pod)
            elif is_own and pod.unschedulable_since is not None:
                placeholders_wait_since.append(pod.unschedulable_since)
            continue
        is_hubs_user = not pod.leaving and settings.is_user(pod, snapshot.namespaces)
        is_neighbour = not pod.leaving and not is_hubs_user and settings.is_neighbour(pod)
        is_user = is_hubs_user or is_neighbour
        # Several sets may learn on the same nodes: a user is of one of them.
        is_sets = is_of_pool = False
        is_here = on_node is not None
        if not is_here and is_user:
            if pod.spec not in waits_here:
                waits_here[pod.spec] = waits_for_set(pod.spec, placeholder_set, nodes)
            is_here = waits_here[pod.spec]
        if is_user and is_here:
            is_sets = takes_seat(pod, placeholder_set.name)
            is_of_pool = is_sets or any(takes_seat(pod, name) for name in names)
        if on_node is not None:
            _add_requests(on_node.by_users if is_user else on_node.by_others, pod.spec)
            on_node.keeps_users |= is_user
            on_node.has_users |= is_of_pool
            on_node.has_others |= not is_of_pool and not pod.is_of_node
        if is_sets and is_hubs_user:
            users[key] = pod
        elif is_of_pool:
            neighbours[key] = pod
    return _PoolPods(
        by_node,
        users,
        neighbours,
        placeholders_wait_since,
        placeholders,
        placeholders_of_neighbours,
        placeholders_of_sets,
        placeholders_there_anyway,
    )


def _add_requests(used: dict[str, int], spec: PodSpec) -> None:
    used[PODS] += 1
    for name, amount in spec.requests:
        used[name] = used.get(name, 0) + amount


def _users(
    pods: Mapping[str, Pod], asked: Mapping[str, int], roomiest: tuple[int, int]
) -> Mapping[str, PoolUser]:
    users: dict[str, PoolUser] = {}
    sizes: dict[tuple[tuple[str, int], ...], float] = {}
    for key, pod in pods.items():
        requests = pod.spec.requests
        if requests not in sizes:
            sizes[requests] = _size(requests, asked, roomiest)
        waits_since = None if pod.node_name else pod.unschedulable_since
        runs = pod.phase != "Pending"
        users[key] = PoolUser(pod.created, sizes[requests], pod.node_name, waits_since, runs)
    return users


def asked_by_placeholder(placeholder_set: PlaceholderSet) -> dict[str, int]:
    """What a placeholder takes of a node; CPU in millicores."""
    asked = {PODS: 1}
    for name, quantity in placeholder_set.requests.items():
        asked[name] = _whole_amount(name, str(quantity))
    return asked


def _roomiest(nodes: Mapping[str, Node]) -> tuple[int, int] | None:
    """CPU and memory of the set's largest node; None where no node says them."""
    cpu = max((node.allocatable.get(CPU, 0) for node in nodes.values()), default=0)
    memory = max((node.allocatable.get(MEMORY, 0) for node in nodes.values()), default=0)
    return (cpu, memory) if cpu and memory else None


def _size(
    requests: Iterable[tuple[str, int]], asked: Mapping[str, int], roomiest: tuple[int, int]
) -> float:
    """A pod's size in placeholders that ask for so much: by what both take of a node, where there
    is one.
    """
    own = dict(requests)
    cpu = asked.get(CPU, 0)
    memory = asked.get(MEMORY, 0)
    own_cpu = own.get(CPU, 0)
    own_memory = own.get(MEMORY, 0)
    if not own_cpu and not own_memory:
        return 1.0
    if all(roomiest) and (cpu or memory):
        node_cpu, node_memory = roomiest
        own_share = max(own_cpu / node_cpu, own_memory / node_memory)
        placeholder_share = max(cpu / node_cpu, memory / node_memory)
        return own_share / placeholder_share
    return size_in_placeholders(own_cpu, own_memory, cpu, memory)


def _room(node: Node, asked: Mapping[str, int], *used: Mapping[str, int]) -> int:
    """How many placeholders fit beside all that is used."""
    if not node.is_usable:
        return 0
    counts = [
        (node.allocatable.get(name, 0) - sum(amounts.get(name, 0) for amounts in used)) // amount
        for name, amount in asked.items()
        if amount
    ]
    return max(0, min(counts))


def is_of_set(rules: NodeRules, node: Node) -> bool:
    """Whether a node is a set's, whatever state it is in now."""
    if not node.taints:
        return node_matches(rules, node.name, node.labels)
    lasting = [taint for taint in node.taints if not _passes_by(taint.key)]
    return (
        node_matches(rules, node.name, node.labels)
        and untolerated(lasting, rules.tolerations) is None
    )


def _passes_by(taint: str) -> bool:
    return taint in ANY_LEAVING_TAINTS or taint.startswith(_STATE_TAINTS)


def waits_for_set(
    spec: PodSpec, placeholder_set: PlaceholderSet, nodes: Mapping[str, Node]
) -> bool:
    """Whether a waiting pod selects a node of the set, or, while it has none, the nodes that the
    set selects.

    What the image gate requires of nodes changes by the minute, and full nodes stay the set's:
    neither counts.
    """
    if not nodes:
        return set(placeholder_set.rules.node_selector) <= set(spec.node_selector)
    return any(
        all(node.labels.get(key) == value for key, value in spec.node_selector)
        for node in nodes.values()
    )


@lru_cache(maxsize=256)
def _whole_amount(name: str, quantity: str) -> int:
    """An amount as pods have it: CPU in millicores; 0 for what is no amount."""
    try:
        return ceil(parse_quantity(quantity) * (1000 if name == CPU else 1))
    except ValueError:
        return 0
