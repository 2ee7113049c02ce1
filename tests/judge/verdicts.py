"""Say who fared worse with Roost: deleted, refused, misplaced, re-spawned, stranded or late;
Roost's own pods aside.

Pods of one kind are as good as each other, so what is compared are numbers and moments of a kind.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tests.judge.cases import BUILD, Case
from tests.judge.roost_here import release_beside, release_for
from tests.judge.world import Fate, World

# imageGate.openAfterSeconds twice, for where the first node was the wrong one, and a step of plan,
# write and scheduler.
LATE_SECONDS = 20.0 + 5.0


class Victim(NamedTuple):
    kind: str
    what: str
    why: str
    # Not shown to be Roost's doing: the same pods on other nodes, as chance would have it.
    is_drift: bool = False
    # An exception that docs/promises.md tells: placeholders stood where the only good room was.
    is_told: bool = False

    @property
    def is_harm(self) -> bool:
        """Whether Roost may not do that to anybody."""
        return not self.is_drift and not self.is_told

    def __str__(self) -> str:
        return (
            f"{'told: ' if self.is_told else 'drift: ' * self.is_drift}{self.kind}: {self.what}:"
            f" {self.why}"
        )


class Trial(NamedTuple):
    without: World
    with_roost: World
    victims: list[Victim]


def try_case(case: Case) -> Trial:
    without = World(case, None).play()
    with_roost = World(case, release_for(case), release_beside(case)).play()
    return Trial(without, with_roost, list(find_victims(case, without, with_roost)))


class Played(Protocol):
    """What became of all pods of a case, by their names: in the model, or on a real control
    plane.
    """

    @property
    def fates(self) -> Mapping[str, Fate]: ...


def find_victims(
    case: Case, without: Played, with_roost: Played, *, late_seconds: float = LATE_SECONDS
) -> Iterable[Victim]:
    kinds = dict.fromkeys(fate.kind for fate in without.fates.values() if not fate.is_again)
    yield from _find_again(with_roost.fates, late_seconds)
    for key, fate in with_roost.fates.items():
        # Who starts again in one world alone would have been refused by nothing but Roost's pods.
        refused = without.fates[key].refused if key in without.fates else ""
        if not fate.is_own and fate.refused and not refused:
            yield Victim(fate.kind, "refused", f"{key}: {fate.refused}")
        for what, why in (("misplaced", fate.misplaced), ("misjudged", fate.misjudged)):
            if why:
                yield Victim(fate.kind, what, why)
    for kind in kinds:
        excused = {key for key, fate in with_roost.fates.items() if fate.is_excused}
        before, after = (
            [fate for key, fate in world.fates.items() if fate.kind == kind and key not in excused]
            for world in (without, with_roost)
        )
        # Whoever pre-empts anyway waits for as long as the victims take to go, and Roost's own may
        # change who that is.
        causes = {
            without.fates[fate.deleted_for].kind
            for fate in without.fates.values()
            if fate.deleted_for in without.fates
        }
        yield from _compare(
            case, kind, before, after, late_seconds, pre_empts_anyway=kind in causes
        )


def _find_again(fates: Mapping[str, Fate], late: float) -> Iterable[Victim]:
    """Who started again as a node was taken back: which users these are is chance, so each alone is
    judged.
    """
    for key, fate in fates.items():
        if not fate.is_again or fate.is_excused:
            continue
        if fate.kept_waiting > late:
            yield Victim(fate.kind, "late", f"{key}: kept waiting for {fate.kept_waiting:.0f} s")
        if fate.respawns and (fate.lured or fate.crowded):
            why = f"{key}: {fate.lured} times lured, {fate.crowded} crowded out"
            yield Victim(fate.kind, "re-spawned", why, is_told=not fate.lured)
        if fate.deleted is not None and fate.is_deleted_by_roost:
            yield Victim(fate.kind, "deleted", f"{key} for {fate.deleted_for}")


def _compare(
    case: Case,
    kind: str,
    before: Sequence[Fate],
    after: Sequence[Fate],
    late: float,
    *,
    pre_empts_anyway: bool,
) -> Iterable[Victim]:
    deleted = sum(fate.deleted is not None for fate in before)
    gone = [fate for fate in after if fate.deleted is not None]
    if len(gone) > deleted:
        whom = ", ".join(sorted({fate.deleted_for for fate in gone}))
        is_drift = not any(fate.is_deleted_by_roost for fate in gone)
        yield Victim(kind, "deleted", f"{len(gone)} for {whom}; {deleted} without", is_drift)
    tries, tried = (sum(fate.respawns for fate in one) for one in (before, after))
    lured, crowded = sum(fate.lured for fate in after), sum(fate.crowded for fate in after)
    if tried > tries:
        why = f"{tried} times; {tries} without; {lured} lured, {crowded} crowded out"
        yield Victim(kind, "re-spawned", why, not lured, crowded > 0 and not lured)
    kept = max((fate.kept_waiting for fate in after), default=0.0)
    for step, allowed in (("bound", late), ("running", late + case.pull_seconds)):
        moments, reached = (
            sorted(moment for fate in one if (moment := getattr(fate, step)) is not None)
            for one in (before, after)
        )
        pairs = zip(moments, reached, strict=False)
        later = [
            f"{then:.0f} s for {moment:.0f} s" for moment, then in pairs if then > moment + allowed
        ]
        # Builds wait for room by their requests: an exception of promise 8.
        is_drift = kept <= late or pre_empts_anyway or kind == BUILD
        if len(reached) < len(moments):
            why = (
                f"{len(reached)} are {step}; {len(moments)} without; kept waiting for {kept:.0f} s"
            )
            is_drift &= not (step == "running" and lured)
            yield Victim(
                kind, "stranded", why, is_drift, is_drift and step == "running" and crowded > 0
            )
            return
        if later:
            yield Victim(
                kind,
                "late",
                f"{step} at {', '.join(later)}; kept waiting for {kept:.0f} s",
                is_drift,
            )
            return
