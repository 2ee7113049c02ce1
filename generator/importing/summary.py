"""Say in plain words what Roost will do for a hub with these values, and what not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from generator.checks.contract import at, listing, mapping, number, text
from generator.faults import count_of
from generator.importing.money import node_hours
from generator.render.managed_images import puller_groups
from roost_core.placement.labels import USER_CLASS

_BUILDS_HAVE_A_HOME: Final = "send builds of a repository to one node, where its layers are"
# How many more node-hours a hub has that learns placeholders and had none, in percent.
_LEARNING_COSTS: Final = (1, 10)
# What is promised.
PLACE: Final = "place"
IMAGES: Final = "images"
GATE: Final = "gate"
PLACEHOLDERS: Final = "placeholders"
# The columns of a timetable that `roost book` reads.
_COLUMNS: Final = "one line a class: weekday,time,people,until"


class TrialFindings(NamedTuple):
    """What made pods of the hub's users showed."""

    # Those that hold for some users.
    promises: frozenset[str]
    # How users fare: a line for each way.
    lines: list[str]
    # Those of the lines whose users have something that isn't known, as only a run would show it.
    not_known: list[str]
    # What must be so before Roost's scheduler gets users that the hub's had.
    unplaced: list[str]
    # Whether one of these names what the hub's Python sets, and nobody knows to what.
    names_unknown: bool
    # Whether nobody knows of any of them which room would be theirs.
    room_is_unknown: bool


class HubSummary(NamedTuple):
    """What Roost will do for a hub and what not, and whether users notice nothing of it; lines for
    people.
    """

    # Begins with the verdict.
    will: list[str]
    wont: list[str]
    # Whether users are placed at all and anything changes for them; empty: both are so.
    verdict: list[str]
    # How the classes of the first week find room, where placeholders are learned.
    first_week: list[str]
    is_inert: bool
    # What is promised; the orders of what to switch off in the hub follow it.
    promises: frozenset[str]


def summary_of(
    values: Mapping[str, object],
    once: Sequence[str] = (),
    seen: TrialFindings | None = None,
    *,
    has_builds: bool = True,
    builds_unknown: str = "",
    node_hour_price: float | None = None,
) -> HubSummary:
    """What values do. once: what must be true before users are placed; has_builds: whether the hub
    makes any.

    builds_unknown: what sets in Python which pods builds are. seen: a promise that no made pod
    showed isn't made; None: none was tried. node_hour_price: for money beside node-hours.
    """
    has_scheduler = at(values, "scheduler", "target") != "none"
    if seen is not None and has_scheduler:
        once = [] if PLACE in seen.promises else seen.unplaced
    will: list[str] = []
    wont: list[str] = []
    promises: set[str] = set()
    for promise, tell in _PROMISES.items():
        lines: list[str] = []
        if promise != PLACE or not once:
            tell(values, lines, wont)
        is_kept = seen is None or promise in seen.promises
        if is_kept or (promise == PLACE and not has_scheduler):
            will += lines
            if lines:
                promises.add(promise)
        else:
            why = "not for these users, as pods made of the hub's values show"
            wont += [f"{line}: {why}" for line in lines]
    if _learns_from_none(values) and not (seen is not None and seen.room_is_unknown):
        will.append(
            "keep placeholders from the third day on, as many as earlier days needed"
            f"{_at_most(values)}, for {node_hours(*_LEARNING_COSTS, 'more', node_hour_price)};"
            " learn: null in placeholders declines"
        )
    # Images of popular repositories need no set, pull and scheduler.
    is_inert = not will and at(values, "popularImages", "enabled") is not True
    build = at(values, "podClasses", "build") if has_builds else None
    if build is not None:
        has_home = at(build, "home") is not None
        line = _BUILDS_HAVE_A_HOME if has_home else "give builds a home node"
        if builds_unknown:
            wont.append(
                f"{line}: which pods builds are isn't known, {builds_unknown} sets it in Python"
            )
        elif has_home:
            will.append(line)
        else:
            wont.append(line)
    wont.append("hold an upgrade of the hub up until images are there")
    verdict = []
    if once:
        verdict.append(f"Roost places no users until {' and '.join(once)}.")
    if is_inert:
        verdict.append("Nothing changes for users with these values.")
        verdict.append(
            "To watch a hub before anything changes, begin with chart/examples/observe-only.yaml."
        )
    return HubSummary(
        will=[*verdict, *_listed("What Roost will do for this hub:", will)],
        wont=[*_listed("What it won't:", wont), *_beside_others(values)],
        verdict=verdict,
        first_week=_first_week(values),
        is_inert=is_inert,
        promises=frozenset(promises),
    )


def _listed(heading: str, lines: Sequence[str]) -> list[str]:
    """Lines below their heading; [] for none."""
    return [heading, *(f"  - {line}" for line in lines)] if lines else []


def _beside_others(values: Mapping[str, object]) -> list[str]:
    """What to do if other hubs' users are on the same nodes."""
    user = at(values, "podClasses", USER_CLASS)
    if not (at(user, "join") or at(user, "warm")):
        return []
    line = (
        "Other hubs on these nodes? Count their users, too: one release, or sharedPools"
        " (docs/many-hubs.md)."
    )
    return [line]


def _scheduling(values: Mapping[str, object], will: list[str], wont: list[str]) -> None:
    user = at(values, "podClasses", USER_CLASS)
    draws = bool(mapping(at(user, "join")))
    if at(values, "scheduler", "target") == "none":
        wont.append(
            "place users: the cluster's scheduler goes on doing that (scheduler.target: none)"
        )
        if draws:
            will.append(
                "prefer nodes with other users, by a preference that the cluster's scheduler weighs"
            )
        else:
            wont.append("bring users together: the hub didn't (podClasses.user.join)")
        return
    profile = mapping(at(values, "scheduler", "profiles", text(at(user, "profile"))))
    names = [name for name in listing(values.get("replaceSchedulers")) if isinstance(name, str)]
    whose = f" (also pods that name {' or '.join(names)})" if names else ""
    if profile.get("plugins"):
        will.append(
            f"place users{whose} by a scheduler of its own with the hub's plugins and weights"
        )
    else:
        strategy = text(profile.get("strategy"))
        how = (
            ": on few nodes, and of those on one that holds their images"
            if strategy == "pack"
            else ""
        )
        will.append(f"place users{whose} by a scheduler of its own, strategy {strategy}{how}")


def _images(values: Mapping[str, object], will: list[str], wont: list[str]) -> None:
    groups = puller_groups(values.get("singleuser"), values.get("prePuller"))
    images = {image for group in groups for image in group.images}
    if at(values, "prePuller", "enabled") is not True:
        wont.append("bring images to nodes: users of a node that lacks theirs start cold")
    elif not images:
        wont.append("bring images to nodes: none is named in singleuser or prePuller.extraImages")
    else:
        # The pullers of a user who chooses nothing. Required terms may still keep some away.
        pods = sum(
            group.node_selector.items() <= groups[0].node_selector.items() for group in groups
        )
        each = f", up to {pods} puller pods on a user node" if pods > 1 else ""
        daemon_sets = count_of(len(groups), "DaemonSet")
        will.append(
            f"bring {count_of(len(images), 'image')} to nodes in advance, by {daemon_sets}{each}"
        )


def _gate(values: Mapping[str, object], will: list[str], wont: list[str]) -> None:
    mode = at(values, "imageGate", "mode")
    images = any(
        group.images for group in puller_groups(values.get("singleuser"), values.get("prePuller"))
    )
    if mode == "requireLabel" and images and at(values, "prePuller", "enabled") is True:
        will.append(
            "keep users off nodes that are still being brought their image, while another node"
            " holds it"
        )
    elif mode == "prefer" and images:
        will.append("let users prefer nodes that have their image, and use any other")
    else:
        wont.append("keep users off nodes that lack their image")


def _placeholders(values: Mapping[str, object], will: list[str], wont: list[str]) -> None:
    sets = [mapping(entry) for entry in listing(values.get("placeholders"))]
    count = sum(int(number(placeholder_set.get("replicas"))) for placeholder_set in sets)
    if count:
        moved = (
            ", moved to the newest node"
            if at(values, "placeholderMover", "enabled") is True
            else ""
        )
        moved += (
            f", after a week as many as earlier days needed{_at_most(values)}"
            if any(placeholder_set.get("learn") for placeholder_set in sets)
            else ""
        )
        what = count_of(count, "placeholder")
        will.append(f"keep {what}{moved}: they give way to users and make an autoscaler act early")
    elif not _learns_from_none(values):
        wont.append("keep placeholders: none are set (placeholders)")


def _at_most(values: Mapping[str, object]) -> str:
    """How many placeholders may be learned, and what that costs if the forecast is wrong."""
    usual = at(values, "placeholder", "defaults", "prices")
    learning = [
        entry for entry in listing(values.get("placeholders")) if mapping(at(entry, "learn"))
    ]
    most = sum(int(number(at(entry, "learn", "max"))) for entry in learning)
    ceilings = [
        number(at(entry, "prices", "monthlyCeiling") or at(usual, "monthlyCeiling"))
        for entry in learning
    ]
    return (
        f" (at most {most}; should the forecast be wrong, for at most {sum(ceilings):g} a month:"
        " prices.monthlyCeiling)"
    )


def _first_week(values: Mapping[str, object]) -> list[str]:
    learning = [
        entry for entry in listing(values.get("placeholders")) if mapping(entry).get("learn")
    ]
    if not learning:
        return []
    needs = "" if at(values, "events", "enabled") is True else ", with events.enabled: true"
    lines = [
        (
            "Room for the first week's classes: roost book --timetable classes.csv    #"
            f" {_COLUMNS}{needs}"
        )
    ]
    if any(at(entry, "learn", "timeZone") == "UTC" for entry in learning):
        lines.append(
            "Set timeZone in placeholders to your users': UTC is written, and forecasts are an hour"
            " off after a clock change."
        )
    if len(learning) == 1:
        options = "-f values.yaml --release roost -n NAMESPACE --prometheus URL --config-map"
        lines.append(f"Or from the weeks before: roost headroom {options} | kubectl apply -f -")
    return lines


def _learns_from_none(values: Mapping[str, object]) -> bool:
    sets = [mapping(entry) for entry in listing(values.get("placeholders"))]
    return any(placeholder_set.get("learn") for placeholder_set in sets) and not any(
        placeholder_set.get("replicas") for placeholder_set in sets
    )


# Each adds to two lists of lines: what Roost will do, and what it won't.
_PROMISES: Final = {PLACE: _scheduling, IMAGES: _images, GATE: _gate, PLACEHOLDERS: _placeholders}
