"""Choose which placeholders to evict: only such as the scheduler would now put on the marked node, and few at a time.

Nothing moves while anything is unsettled: a placeholder that is pending or on its way, a user that waits for room, a
node at either end that is not fit. What became of a move is compared with what was foreseen; a wrong guess makes the
mover wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from roost.controllers.contract.actions import EvictPod, Notice, Outcome
from roost.controllers.placeholder_mover.model import Answer
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from roost.controllers.contract.actions import Action, Done
    from roost.controllers.contract.placeholder_sets import PlaceholderSet
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost.controllers.placeholder_mover.marks import Mark
    from roost.controllers.placeholder_mover.model import Model
    from roost.controllers.placeholder_mover.settings import MoverSettings
    from roost.controllers.placeholder_mover.view import View
    from roost_core.scheduler.objects import PodState
    from roost_core.scheduler.profile import Profile

WINDOW_SECONDS: Final = 60.0
# The pod is still there, or has no successor: nothing will come of the eviction.
UNDONE_SECONDS: Final = 60.0
# Its successor has no node: something else is wrong, which isn't to be waited for.
LOST_SECONDS: Final = 600.0
# Questions to the model in one plan: each takes milliseconds where there are thousands of nodes.
MAX_QUESTIONS: Final = 20
# Until the next part of the model is made.
MODEL_SECONDS: Final = 0.5


class Move(NamedTuple):
    """One eviction and what was foreseen."""

    set_name: str
    # namespace/name; the successor's, too.
    pod: str
    uid: str
    source: str
    target: str
    # Steady seconds.
    at: float


class BackOff(NamedTuple):
    """No moves of a set until then."""

    # In a row.
    failures: int
    # Steady seconds.
    until: float


@dataclass(frozen=True, slots=True)
class MoveMemory:
    """What earlier plans did. Moments are steady seconds."""

    # Of the last minute.
    evictions: tuple[float, ...] = ()
    # Evicted, and not known yet where their successors went.
    flying: tuple[Move, ...] = ()
    # Asked for by the last plan, by the pod's uid.
    asked: Mapping[str, Move] = field(default_factory=dict)
    # By set.
    back_offs: Mapping[str, BackOff] = field(default_factory=dict)
    # When the model was last asked for a set: who waited longest comes first.
    served: Mapping[str, float] = field(default_factory=dict)


class Held(NamedTuple):
    """Placeholders that stay where they are for now, though they aren't on the marked node."""

    reason: str
    number: int
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class Moving:
    """What is to be moved now."""

    actions: Sequence[Action]
    memory: MoveMemory
    held: Mapping[str, Held]
    waits: Sequence[float]


def plan_moves(view: View, marks: Mapping[str, Mark], memory: MoveMemory, model: Model) -> Moving:
    """Choose evictions, at most as many as the minute has left."""
    settings, now = view.settings, view.now
    memory, notices = _settle(memory, view.snapshot, settings, now)
    world = _World(view, model)
    asked: dict[str, Move] = {}
    actions: list[Action] = []
    held: dict[str, Held] = {}
    waits: list[float] = []
    served = {one.name: memory.served.get(one.name, -inf) for one in settings.sets}
    # Questions and evictions may not do for all sets.
    for one in sorted(settings.sets, key=lambda one: served[one.name]):
        mark = marks.get(one.name)
        elsewhere = [
            pod for pod in view.placeholders.by_set[one.name].bound if mark is None or pod.node_name != mark.node
        ]
        why = _why_held(view, one, mark, memory)
        if not elsewhere:
            continue
        if why is not None:
            held[one.name] = Held(why.reason, len(elsewhere), why.seconds_left)
            continue
        assert mark is not None  # noqa: S101 - no mark is a reason to hold
        left = settings.evictions_per_minute - len(memory.evictions) - len(asked)
        if left <= 0:
            held[one.name] = Held("the minute's evictions are used up", len(elsewhere), _next_eviction(memory, now))
            continue
        if world.is_exhausted:
            held[one.name] = Held("other sets come first", len(elsewhere))
            continue
        if not world.is_ready:
            held[one.name] = Held("the scheduler's model is being made", len(elsewhere), MODEL_SECONDS)
            continue
        served[one.name] = now.steady
        moves = _choose_moves(view, world, mark, elsewhere, left)
        for pod, move in moves.chosen:
            asked[move.uid] = move
            why_moved = f"set {one.name}: the scheduler would now put it on {move.target} rather than {move.source}"
            actions.append(EvictPod(namespace=pod.namespace, name=pod.name, uid=pod.uid, why=why_moved))
        if moves.held is not None:
            held[one.name] = moves.held
    model.undo()
    waits += [one.seconds_left for one in held.values() if one.seconds_left is not None]
    return Moving([*actions, *notices], replace(memory, asked=asked, served=served), held, waits)


def note_moves(memory: MoveMemory, done: Iterable[Done], settings: MoverSettings, now: Moment) -> MoveMemory:
    """Learn what became of the evictions asked for."""
    evictions, flying, back_offs = list(memory.evictions), list(memory.flying), dict(memory.back_offs)
    for action, outcome in done:
        if not isinstance(action, EvictPod) or outcome is Outcome.HELD_BACK:
            continue
        evictions.append(now.steady)
        move = memory.asked.get(action.uid)
        if move is None:
            continue
        if outcome in (Outcome.DONE, Outcome.FAILED):
            # Failed: it may have been carried out all the same.
            flying.append(move._replace(at=now.steady))
        elif outcome is Outcome.REFUSED:
            back_offs[move.set_name] = _backed_off(back_offs.get(move.set_name), settings, now)
    return MoveMemory(tuple(evictions), tuple(flying), {}, back_offs, memory.served)


def _settle(
    memory: MoveMemory, snapshot: Snapshot, settings: MoverSettings, now: Moment
) -> tuple[MoveMemory, list[Notice]]:
    """See where evicted placeholders went; forget what is over."""
    flying: list[Move] = []
    notices: list[Notice] = []
    back_offs = dict(memory.back_offs)
    for move in memory.flying:
        pod = snapshot.pods.get(move.pod)
        age_seconds = now.steady - move.at
        if pod is not None and pod.uid == move.uid:
            if age_seconds < UNDONE_SECONDS:
                flying.append(move)
        elif pod is None:
            # Its set has fewer replicas by now, or its controller is away.
            if age_seconds < UNDONE_SECONDS:
                flying.append(move)
        elif not pod.node_name:
            if age_seconds < LOST_SECONDS:
                flying.append(move)
        elif pod.node_name == move.target:
            if (back_off_before := back_offs.get(move.set_name)) and back_off_before.until <= now.steady:
                del back_offs[move.set_name]
        else:
            back_off = back_offs[move.set_name] = _backed_off(back_offs.get(move.set_name), settings, now)
            notices.append(_wrong_guess(move, pod, back_off, now))
    evictions = tuple(at for at in memory.evictions if at > now.steady - WINDOW_SECONDS)
    known = {one.name for one in settings.sets}
    back_offs = {name: back_off for name, back_off in back_offs.items() if name in known}
    return MoveMemory(evictions, tuple(flying), {}, back_offs, memory.served), notices


def _backed_off(before: BackOff | None, settings: MoverSettings, now: Moment) -> BackOff:
    if before is not None and before.until > now.steady:
        # One of several that went wrong together.
        return before
    failures = 1 if before is None else before.failures + 1
    seconds = min(settings.max_back_off_seconds, settings.back_off_seconds * 2 ** min(failures - 1, 30))
    return BackOff(failures, now.steady + seconds)


def _wrong_guess(move: Move, pod: PodState, back_off: BackOff, now: Moment) -> Notice:
    where = "came back" if pod.node_name == move.source else f"went to {pod.node_name}"
    return Notice(
        kind="Pod",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        reason="PlaceholderMovedElsewhere",
        message=(
            f"This placeholder was to go from {move.source} to {move.target} and {where}; "
            f"no other of set {move.set_name} moves for {back_off.until - now.steady:.0f} s."
        ),
        warning=True,
    )


def _why_held(view: View, one: PlaceholderSet, mark: Mark | None, memory: MoveMemory) -> Held | None:
    """Why no placeholder of the set may move now, whichever it is."""
    snapshot, settings, placeholders, now = view.snapshot, view.settings, view.placeholders, view.now
    if mark is None:
        return Held("no marked node", 0)
    node = snapshot.nodes[mark.node]
    if one.label not in node.fact.labels:
        return Held("mark on its way", 0)
    if (unfit := view.judge.why_undrawn(node, one) or view.judge.why_unmoved(node)) is not None:
        return Held(f"marked node: {unfit.reason}", 0, unfit.seconds_left)
    if not placeholders.preempted_on.isdisjoint(
        {mark.node, *(pod.node_name for pod in placeholders.by_set[one.name].bound)}
    ):
        return Held("a user waits for room", 0)
    stateful_set = snapshot.stateful_sets.get(one.stateful_set)
    mine = placeholders.by_set[one.name]
    if stateful_set is None or stateful_set.is_rolling:
        return Held("the set is being rolled out", 0)
    if any(move.set_name == one.name for move in memory.flying):
        return Held("a move is under way", 0)
    if mine.unsettled or len(mine.bound) != stateful_set.replicas:
        return Held("placeholders are pending", 0)
    if (back_off := memory.back_offs.get(one.name)) is not None and back_off.until > now.steady:
        return Held("backing off", 0, back_off.until - now.steady)
    if settings.profile_fault:
        return Held("the scheduler's configuration can't be followed", 0)
    return None


def _next_eviction(memory: MoveMemory, now: Moment) -> float | None:
    return memory.evictions[0] + WINDOW_SECONDS - now.steady if memory.evictions else None


class _World:
    """What is asked of this snapshot; the scheduler's model follows it when it is asked for the first time."""

    def __init__(self, view: View, model: Model) -> None:
        self._model = model
        self._snapshot = view.snapshot
        self._settings = view.settings
        self._placeholders = view.placeholders
        self._questions = 0
        self._is_ready: bool | None = None
        self._classes = view.settings.classifier()

    def profile_of(self, pod: PodState) -> Profile | None:
        """The profile that places the pod; None: a scheduler that isn't known here."""
        return self._settings.profiles.get(pod.scheduler_name)

    def try_move(self, pod: PodState, target: str, profile: Profile) -> Answer:
        """Ask the model, which takes the move for done if the answer is THERE."""
        self._questions += 1
        return self._model.try_move(pod, target, profile)

    @property
    def is_ready(self) -> bool:
        """Whether the model knows the whole snapshot; of a large cluster it learns a part in each plan."""
        if self._is_ready is None:
            self._is_ready = self._model.follow(self._snapshot)
        return self._is_ready

    @property
    def is_exhausted(self) -> bool:
        """Whether a plan has asked enough; the next one goes on."""
        return self._questions >= MAX_QUESTIONS

    def count_users(self, node: str) -> int:
        """Pods of users on the node."""
        users = self._settings.user_classes
        found = (
            self._classes.classify(pod.labels, pod.namespace, None)
            for pod in self._placeholders.pods_on(node)
            if PLACEHOLDER_SET_LABEL not in pod.labels
        )
        return sum(one is not None and one.name in users for one in found)


@dataclass(frozen=True, slots=True)
class _Choice:
    chosen: Sequence[tuple[PodState, Move]]
    held: Held | None


def _choose_moves(view: View, world: _World, mark: Mark, elsewhere: Sequence[PodState], left: int) -> _Choice:
    """Evictions of one set's placeholders, users' fullest node first, each as the model has it after the one before."""
    by_source: dict[str, list[PodState]] = {}
    for pod in elsewhere:
        by_source.setdefault(pod.node_name, []).append(pod)
    target = view.snapshot.nodes[mark.node]
    # Users should find room where most of them are: placeholders leave it first, and never go where more users are.
    users = {name: world.count_users(name) for name in by_source}
    users_there = world.count_users(mark.node)
    chosen: list[tuple[PodState, Move]] = []
    unmoved: Held | None = None
    staying = 0
    for source in sorted(by_source, key=lambda name: (-users[name], name)):
        node = view.snapshot.nodes.get(source)
        why = None if node is None else view.judge.why_unmoved(node)
        if node is None or why is not None:
            staying += len(by_source[source])
            unmoved = Held(f"their node: {why.reason if why else 'gone'}", 0, why.seconds_left if why else None)
            continue
        if users[source] < users_there:
            staying += len(by_source[source])
            unmoved = unmoved or Held("more users are on the marked node", 0)
            continue
        for pod in sorted(by_source[source], key=lambda pod: pod.name):
            profile = world.profile_of(pod)
            if profile is None:
                return _Choice(chosen, Held("their scheduler is not one of Roost's", len(elsewhere)))
            # The model is asked only where there is room at all: it costs more than counting.
            if not view.placeholders.has_room(target, pod.spec):
                return _Choice(chosen, None)
            if world.is_exhausted:
                return _Choice(chosen, Held("the next plan goes on", len(elsewhere) - len(chosen)))
            answer = world.try_move(pod, mark.node, profile)
            if answer is Answer.NOBODY:
                return _Choice(chosen, None)
            if answer is Answer.ELSEWHERE:
                break
            if len(chosen) == left:
                return _Choice(chosen, Held("the minute's evictions are used up", len(elsewhere) - len(chosen)))
            chosen.append(
                (pod, Move(pod.labels[PLACEHOLDER_SET_LABEL], pod.key, pod.uid, source, mark.node, view.now.steady))
            )
    return _Choice(chosen, unmoved._replace(number=staying) if unmoved else None)
