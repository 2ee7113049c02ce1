"""Say in plain words what Roost will do for a hub with these values, and what not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from generator.faults import count_of
from generator.importing.money import node_hours
from generator.render.managed_images import puller_groups
from generator.values.lookups import child, listing, mapping, number, text
from roost_core.placement.headroom_worth import CEILING_SHARE, least_ceiling
from roost_core.placement.labels import USER_CLASS

_BUILDS_HAVE_A_HOME: Final = "send builds of a repository to one node, where its layers are"
# How many more node-hours a hub has that learns placeholders and had none, in percent.
_LEARNING_COSTS: Final = (1, 10)
# What is promised.
PLACE: Final = "place"
IMAGES: Final = "images"
GATE: Final = "gate"
PLACEHOLDERS: Final = "placeholders"
# `learn.max` of a hub without a limit of servers: more people than begin at once on most hubs, so
# that classes of all of them get room. What a wrong forecast costs has another bound: the ceiling.
MOST_PLACEHOLDERS: Final = 1000
# The columns of a timetable that `roost book` reads.
_COLUMNS: Final = "one line a class: weekday,time,people,until"


class TrialFindings(NamedTuple):
    """What trial pods, made of the hub's values, showed."""

    # Promises that hold for some users.
    promises: frozenset[str]
    # How users fare: a line for each way.
    lines: list[str]
    # The lines about users who have something that isn't known: only a run would show it.
    not_known: list[str]
    # What must be so before Roost's scheduler gets users that the hub's had.
    unplaced: list[str]
    # Whether a line of `unplaced` names what the hub's Python sets, and only a run would show to
    # what.
    names_unknown: bool
    # Whether it isn't known of any of the pods how much room it takes.
    room_is_unknown: bool


class HubSummary(NamedTuple):
    """What Roost will do for a hub and what not, as lines for people."""

    # Begins with the verdict.
    will: list[str]
    wont: list[str]
    # Lines that say that users aren't placed yet, or that nothing changes for them; empty: neither.
    verdict: list[str]
    # How the classes of the first week find room, where placeholders are learned.
    first_week: list[str]
    # What is promised; the orders of what to switch off in the hub follow it.
    promises: frozenset[str]


class _Part(NamedTuple):
    """What Roost does of one part of its work, and what it doesn't; lines for people."""

    will: list[str]
    wont: list[str]


def summary_of(
    values: Mapping[str, object],
    conditions: Sequence[str] = (),
    trial: TrialFindings | None = None,
    *,
    has_builds: bool = True,
    builds_unknown: str = "",
    node_hour_price: float | None = None,
) -> HubSummary:
    """What values do.

    conditions: what must be true before users are placed, as far as the hub's values say. trial:
    what trial pods showed; a promise that none showed isn't made. None: none was tried. has_builds:
    whether the hub makes any. builds_unknown: the key that decides which pods builds are, if nobody
    knows to what. node_hour_price: for money beside node-hours.
    """
    unmet = conditions
    if trial is not None and child(values, "scheduler", "target") != "none":
        unmet = [] if PLACE in trial.promises else trial.unplaced
    promises, part = _promised(values, trial, is_placing=not unmet)
    will = part.will
    wont = part.wont
    room_is_known = trial is None or not trial.room_is_unknown
    if room_is_known and _learns_from_none(values):
        will.append(
            "keep placeholders from the third day on, as many as earlier days needed"
            f"{_at_most(values)}, for {node_hours(*_LEARNING_COSTS, 'more', node_hour_price)};"
            " learn: null in placeholders declines"
        )
    # Images of popular repositories need no set, pull and scheduler.
    is_inert = not will and child(values, "popularImages", "enabled") is not True
    if has_builds:
        builds = _builds(values, builds_unknown)
        will += builds.will
        wont += builds.wont
    wont.append("hold an upgrade of the hub up until images are there")
    verdict = _verdict(unmet, is_inert=is_inert)
    return HubSummary(
        will=[*verdict, *_listed("What Roost will do for this hub:", will)],
        wont=[*_listed("What it won't:", wont), *_beside_others(values)],
        verdict=verdict,
        first_week=_first_week(values),
        promises=promises,
    )


def _promised(
    values: Mapping[str, object], trial: TrialFindings | None, *, is_placing: bool
) -> tuple[frozenset[str], _Part]:
    """The promises that hold for these users, and what all parts of Roost do."""
    not_shown: set[str] = set()
    if trial is not None:
        not_shown = _PARTS.keys() - trial.promises
        if child(values, "scheduler", "target") == "none":
            # Without Roost's scheduler there is no pod to show it.
            not_shown.discard(PLACE)
    promises: set[str] = set()
    will: list[str] = []
    wont: list[str] = []
    for promise, part_of in _PARTS.items():
        if promise == PLACE and not is_placing:
            continue
        part = part_of(values)
        wont += part.wont
        if promise in not_shown:
            why = "not for these users, as pods made of the hub's values show"
            wont += [f"{line}: {why}" for line in part.will]
        elif part.will:
            will += part.will
            promises.add(promise)
    return frozenset(promises), _Part(will, wont)


def _verdict(unmet: Sequence[str], *, is_inert: bool) -> list[str]:
    """What stands before all else; [] where users are placed."""
    verdict = []
    if unmet:
        verdict.append(f"Roost places no users until {' and '.join(unmet)}.")
    if is_inert:
        verdict.append("Nothing changes for users with these values.")
        verdict.append(
            "To watch a hub before anything changes, begin with chart/examples/observe-only.yaml."
        )
    return verdict


def _listed(heading: str, lines: Sequence[str]) -> list[str]:
    """Lines below their heading; [] for none."""
    return [heading, *(f"  - {line}" for line in lines)] if lines else []


def _beside_others(values: Mapping[str, object]) -> list[str]:
    """What to do if other hubs' users are on the same nodes."""
    user = child(values, "podClasses", USER_CLASS)
    if not (child(user, "join") or child(user, "warm")):
        return []
    line = (
        "Other hubs on these nodes? Count their users, too: one release, or sharedPools"
        " (docs/many-hubs.md)."
    )
    return [line]


def _scheduling(values: Mapping[str, object]) -> _Part:
    user = child(values, "podClasses", USER_CLASS)
    if child(values, "scheduler", "target") == "none":
        others = "place users: the cluster's scheduler goes on doing that (scheduler.target: none)"
        if mapping(child(user, "join")):
            prefers = (
                "prefer nodes with other users, by a preference that the cluster's scheduler weighs"
            )
            return _Part([prefers], [others])
        return _Part([], [others, "bring users together: the hub didn't (podClasses.user.join)"])
    profile = mapping(child(values, "scheduler", "profiles", text(child(user, "profile"))))
    names = [name for name in listing(values.get("replaceSchedulers")) if isinstance(name, str)]
    whose = f" (also pods that name {' or '.join(names)})" if names else ""
    line = f"place users{whose} by a scheduler of its own"
    if profile.get("plugins"):
        return _Part([f"{line} with the hub's plugins and weights"], [])
    strategy = text(profile.get("strategy"))
    line += f", strategy {strategy}"
    if strategy == "pack":
        line += ": on few nodes, and of those on one that holds their images"
    return _Part([line], [])


def _images(values: Mapping[str, object]) -> _Part:
    groups = puller_groups(values.get("singleuser"), values.get("prePuller"))
    images = {image for group in groups for image in group.images}
    if child(values, "prePuller", "enabled") is not True:
        why = "users of a node that lacks theirs start cold"
        return _Part([], [f"bring images to nodes: {why}"])
    if not images:
        why = "none is named in singleuser or prePuller.extraImages"
        return _Part([], [f"bring images to nodes: {why}"])
    # The pullers of a user who chooses nothing. Required terms may still keep some away.
    usual_labels = groups[0].node_selector.items()
    pods = sum(group.node_selector.items() <= usual_labels for group in groups)
    line = f"bring {count_of(len(images), 'image')} to nodes in advance, by"
    line += f" {count_of(len(groups), 'DaemonSet')}"
    if pods > 1:
        line += f", up to {pods} puller pods on a user node"
    return _Part([line], [])


def _gate(values: Mapping[str, object]) -> _Part:
    mode = child(values, "imageGate", "mode")
    groups = puller_groups(values.get("singleuser"), values.get("prePuller"))
    has_images = any(group.images for group in groups)
    if mode == "requireLabel" and has_images and child(values, "prePuller", "enabled") is True:
        line = (
            "keep users off nodes that are still being brought their image, while another node"
            " holds it"
        )
        return _Part([line], [])
    if mode == "prefer" and has_images:
        return _Part(["let users prefer nodes that have their image, and use any other"], [])
    return _Part([], ["keep users off nodes that lack their image"])


def _placeholders(values: Mapping[str, object]) -> _Part:
    sets = [mapping(entry) for entry in listing(values.get("placeholders"))]
    count = sum(int(number(placeholder_set.get("replicas"))) for placeholder_set in sets)
    if count:
        line = f"keep {count_of(count, 'placeholder')}"
        if child(values, "placeholderMover", "enabled") is True:
            line += ", moved to the newest node"
        if any(placeholder_set.get("learn") for placeholder_set in sets):
            line += f", after a week as many as earlier days needed{_at_most(values)}"
        return _Part([f"{line}: they give way to users and make an autoscaler act early"], [])
    if _learns_from_none(values):
        # The summary says so itself, where it knows what that costs.
        return _Part([], [])
    return _Part([], ["keep placeholders: none are set (placeholders)"])


def _builds(values: Mapping[str, object], unknown: str) -> _Part:
    """What Roost does for builds. unknown: the key that decides which pods these are, if its value
    isn't known; else "".
    """
    build = child(values, "podClasses", "build")
    if build is None:
        return _Part([], [])
    has_home = child(build, "home") is not None
    line = _BUILDS_HAVE_A_HOME if has_home else "give builds a home node"
    if unknown:
        why = f"which pods builds are isn't known, {unknown} sets it"
        return _Part([], [f"{line}: {why}"])
    return _Part([line], []) if has_home else _Part([], [line])


def _at_most(values: Mapping[str, object]) -> str:
    """How many placeholders may be learned, and what they may cost in a month."""
    usual = child(values, "placeholder", "defaults", "prices")
    learning = [
        entry for entry in listing(values.get("placeholders")) if mapping(child(entry, "learn"))
    ]
    most = sum(int(number(child(entry, "learn", "max"))) for entry in learning)
    ceilings: list[float] = []
    for entry in learning:
        waiting_hour = child(entry, "prices", "waitingHour") or child(usual, "waitingHour")
        node_hour = child(entry, "prices", "nodeHour") or child(usual, "nodeHour")
        ceilings.append(least_ceiling(number(waiting_hour), number(node_hour)))
    costs = "they may cost at most {} of what their nodes cost"
    if len(learning) > 1:
        costs = "each entry may cost at most {} of what its nodes cost"
    share = costs.format(f"{100 * CEILING_SHARE:.0f} %")
    return f" (at most {most}; {share}, or {max(ceilings):g} a month if that is more: prices)"


def _first_week(values: Mapping[str, object]) -> list[str]:
    learning = [
        entry for entry in listing(values.get("placeholders")) if mapping(entry).get("learn")
    ]
    if not learning:
        return []
    command = f"roost book --timetable classes.csv    # {_COLUMNS}"
    if child(values, "events", "enabled") is not True:
        command += ", with events.enabled: true"
    lines = [f"Room for the first week's classes: {command}"]
    limit = number(child(values, "events", "activeServerLimit"))
    greatest = [number(child(entry, "learn", "max")) for entry in learning]
    enough = (limit, MOST_PLACEHOLDERS)
    guessed = ", ".join(f"{most:g}" for most in greatest if most not in enough)
    if guessed:
        lines.append(
            f"Set learn.max in placeholders ({guessed}) to the people of your busiest hour, if"
            " they are more: no room is kept for more."
        )
    if any(child(entry, "learn", "timeZone") == "UTC" for entry in learning):
        lines.append(
            "Set timeZone in placeholders to your users': UTC is written, and forecasts are an hour"
            " off after a clock change."
        )
    if len(learning) == 1:
        options = "-f values.yaml --release roost -n NAMESPACE --prometheus URL --config-map"
        lines.append(f"Or from the weeks before: roost headroom {options} | kubectl apply -f -")
    return lines


def _learns_from_none(values: Mapping[str, object]) -> bool:
    """Whether placeholders are learned, and there are none until then."""
    sets = [mapping(entry) for entry in listing(values.get("placeholders"))]
    has_replicas = any(placeholder_set.get("replicas") for placeholder_set in sets)
    return not has_replicas and any(placeholder_set.get("learn") for placeholder_set in sets)


# Promise -> the part of Roost's work that keeps it.
_PARTS: Final = {PLACE: _scheduling, IMAGES: _images, GATE: _gate, PLACEHOLDERS: _placeholders}
