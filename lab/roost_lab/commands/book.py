"""`roost book`: book so many people for a time, list what is booked, change it and take it back."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import click
import yaml

from generator.faults import UsageError, one_line, some
from generator.values.files import read_file
from roost.commands.options import cluster_options
from roost.controllers.runtime.booking_sources import MOST_EVENTS_OF_HUB, MOST_TEXT, PAST_SECONDS
from roost.doctor.seats import Seats
from roost_core.kube.client import ApiError, Client, ClusterError
from roost_core.kube.user_account import connect_as_user
from roost_core.objects.node import Node, node_or_none
from roost_core.placement.headroom_windows import local_time
from roost_core.placement.labels import (
    EVENTS_KEY,
    EVENTS_LABEL,
    HUB_BOOKINGS,
    RELEASE_KEY,
    base_name,
    object_name,
)
from roost_core.release.events import (
    MOST_EVENTS,
    Event,
    Limits,
    bookable_sets,
    first_start_after,
    hub_limits,
)
from roost_lab.booking import checked, entry_of, event_options, read_zone, with_profile
from roost_lab.commands.options import refuse
from roost_lab.commands.timetable import (
    MOST_BYTES,
    TimetableRules,
    WeeklyClass,
    busiest,
    minute_of_week,
    read_first_day,
    read_timetable,
)

_Classes = Sequence[WeeklyClass]

# Of one booking, where nobody knows `events.maxPeople`.
_MOST_PEOPLE: Final = 100_000


class _Bookings:
    """The ConfigMap with the bookings, and what is known of the release's limits."""

    def __init__(self, client: Client, namespace: str, release: str, name: str | None) -> None:
        base = base_name(release)
        self.client, self.namespace, self.release = client, namespace, release
        self.name = name or object_name(base, "bookings")
        self._folder = f"/api/v1/namespaces/{namespace}/configmaps"
        settings = f"{self._folder}/{object_name(base, 'release')}"
        try:
            found = client.find(settings)
        except ApiError as error:
            if error.status != 403:
                raise
            found = {}
        # Of the release; empty where it isn't known.
        self.document: Mapping[str, Any] = json.loads(found["data"][RELEASE_KEY]) if found else {}
        self.events: Mapping[str, Any] = self.document.get("events") or {}
        if found is None and name is None:
            raise UsageError(
                f"found no release {release} in namespace {namespace} (no ConfigMap"
                f" {settings.rpartition('/')[2]}), expected one: say --release and --namespace, or"
                f" --config-map {HUB_BOOKINGS} in a hub's own namespace"
            )
        self._found = client.find(f"{self._folder}/{self.name}")
        labels = ((self._found or {}).get("metadata") or {}).get("labels") or {}
        if (other := labels.get(EVENTS_LABEL, release)) != release:
            raise UsageError(
                f"ConfigMap {namespace}/{self.name} books for release {other}: say --release"
                f" {other}"
            )
        text = ((self._found or {}).get("data") or {}).get(EVENTS_KEY) or "[]"
        try:
            entries = yaml.load(text, Loader=yaml.CSafeLoader)
            names = {str(each["name"]) for each in entries}
        except (yaml.YAMLError, ValueError, RecursionError, TypeError, KeyError):
            entries, names = (), {""}
        if len(names) != len(entries):
            raise UsageError(
                f"ConfigMap {namespace}/{self.name}, {EVENTS_KEY}: found {text[:40]!r}, expected a"
                " list of events with names of their own. Nothing was changed: mend it, or say"
                " another --config-map"
            )
        self.entries: dict[str, dict[str, Any]] = {str(each["name"]): each for each in entries}

    def limits(self, entry: Mapping[str, Any]) -> Limits:
        """What may be booked; anything where it isn't known."""
        if not self.document:
            return Limits((str(entry.get("set") or "the first set"),), _MOST_PEOPLE)
        if not (self.events.get("enabled") and self.events.get("configMaps")):
            raise UsageError(
                f"release {self.release} in namespace {self.namespace} reads no bookings: the"
                " operator sets events.enabled (and events.configMaps, if it is false) to true"
            )
        return Limits(bookable_sets(self.document), int(self.events["maxPeople"]))

    def forget_past(self, now: float) -> None:
        """Leave out what began a day ago and more, and doesn't come again."""
        for name, entry in list(self.entries.items()):
            with suppress(UsageError):
                if (
                    first_start_after(checked(entry, self.limits(entry)), int(now - PAST_SECONDS))
                    is None
                ):
                    del self.entries[name]

    def write(self) -> None:
        """Store the entries, unless somebody else did meanwhile. Raises ClusterError."""
        text = yaml.safe_dump(
            list(self.entries.values()), sort_keys=False, allow_unicode=True, width=200
        )
        most = MOST_EVENTS_OF_HUB if self.name == HUB_BOOKINGS else MOST_EVENTS
        if len(self.entries) > most or len(text) > MOST_TEXT:
            raise UsageError(
                f"ConfigMap {self.namespace}/{self.name}: would hold {len(self.entries)} bookings"
                f" of {len(text)} characters, expected at most {most} of {MOST_TEXT}. Nothing was"
                " changed: cancel some first"
            )
        metadata: dict[str, Any] = {"name": self.name, "labels": {EVENTS_LABEL: self.release}}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {EVENTS_KEY: text},
        }
        if self._found is None:
            self.client.create(self._folder, body)
            return
        metadata["resourceVersion"] = self._found["metadata"]["resourceVersion"]
        try:
            self.client.merge(f"{self._folder}/{self.name}", body, "roost-book")
        except ApiError as error:
            if error.status == 409:
                raise ClusterError(
                    f"ConfigMap {self.name} changed meanwhile; nothing was booked: try again"
                ) from None
            raise

    def seats(self, set_name: str) -> Seats:
        """The placeholders of a set on the nodes; without the right to list nodes there are
        none.
        """
        nodes: list[Node | None] = []
        with suppress(ClusterError):
            nodes = [node_or_none(item) for item in self.client.get("/api/v1/nodes")["items"]]
        entry = next(each for each in self.document["placeholders"] if each["name"] == set_name)
        return Seats(entry, [node for node in nodes if node])


def _not_checked(bookings: _Bookings) -> str:
    return (
        "  Not checked: what the release allows (its ConfigMap can't be read from here). The"
        f" controllers answer with an Event: kubectl describe configmap {bookings.name}\n"
    )


def _meaning(bookings: _Bookings, event: Event, start: int) -> str:
    """What a booking brings, and costs."""
    events, zone = bookings.events, event.starts.time_zone
    if not events:
        return _not_checked(bookings)
    lead, settle = events["leadMinutes"], events["settleMinutes"]
    seats = min(event.people, events["maxPlaceholders"])
    text = (
        f"  From {local_time(start - 60 * lead, zone)} set {event.set_name} has {seats}"
        " placeholders more"
    )
    if seats < event.people:
        text += " (events.maxPlaceholders)"
    room = bookings.seats(event.set_name)
    if room.per_node:
        nodes = -(-seats // room.per_node)
        come, none = (f"{nodes * minutes / 60:.1f}" for minutes in (lead, lead + settle))
        text += (
            f": about {nodes} nodes ({room.per_node} a node), {come} node-hours more if all come,"
            f" {none} if nobody does"
        )
    told = [*hub_limits(event.people, events)]
    # Whoever books may lack the right to read quotas and pools.
    with suppress(ClusterError):
        told += room.misfits(bookings.client, bookings.namespace, seats)
    return f"{text}.\n" + "".join(f"  {reason} {fix}\n" for reason, fix in told)


def _line(entry: Mapping[str, Any], event: Event, now: float) -> str:
    start = first_start_after(event, int(now))
    when = "over" if start is None else local_time(start, event.starts.time_zone)
    often = (
        f", then {entry['start']}"
        if start is not None and first_start_after(event, start) is not None
        else ""
    )
    until = f" until {entry['until']}" if often and entry.get("until") else ""
    return (
        f"{event.name}: {event.people} people,"
        f" {when}{often}{until}{event.image and f', {event.image}'}\n"
    )


@click.command("book")
@event_options
@click.option(
    "--until", metavar="DATE", default="", help="The last day of what recurs, such as 2027-02-12."
)
@click.option(
    "--name",
    metavar="NAME",
    default="",
    help="Of the booking; one of that name is changed. Default: WHEN.",
)
@click.option("--cancel", metavar="NAME", default="", help="Take this booking back.")
@click.option(
    "--timetable", metavar="FILE", default="", help="Book weekly classes: CSV, one a line."
)
@click.option("--from", "first", metavar="DATE", default="", help="The timetable's first day.")
@click.option(
    "--config-map",
    metavar="NAME",
    help="That has the bookings. Default: the release's, roost-bookings.",
)
@click.option(
    "--release", metavar="NAME", default="roost", show_default=True, help="Helm's release."
)
@click.option("-n", "--namespace", metavar="NAME", help="Default: the kubeconfig's, else default.")
@cluster_options
def command(
    *,
    people: int | None,
    when: tuple[str, ...],
    name: str,
    cancel: str,
    timetable: str,
    first: str,
    config_map: str | None,
    release: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    **words: str,
) -> int:
    """Book PEOPLE for WHEN: placeholders and their image are there five minutes before. Without
    them: list bookings.

    WHEN is a time in words, a date-time or a cron expression.

    \b
    roost book 120 tomorrow 9:00 --name "intro lecture" --image quay.io/me/course:1 --namespace hub
    roost book 30 every monday,thursday 14:00 --until 2027-02-12 --zone Europe/Berlin
    roost book
    roost book --cancel "intro lecture"
    roost book --timetable classes.csv --zone Europe/Berlin
    """
    is_listing = people is None and not when
    other_words = [name, cancel, *(text for key, text in words.items() if key != "zone")]
    if timetable and (not is_listing or any(other_words)):
        raise UsageError("found --timetable beside what the file says, expected the file alone")
    if first and not timetable:
        raise UsageError("found --from without --timetable, expected both")
    if not is_listing and cancel:
        raise UsageError("found --cancel beside PEOPLE and WHEN, expected one of them")
    new = {} if is_listing else entry_of(people, when, name=name, **words)
    data = read_file(timetable, MOST_BYTES) if timetable else b""
    first_day = read_first_day(first)
    now = time.time()
    try:
        client = connect_as_user(kubeconfig, context)
        bookings = _Bookings(client, namespace or client.namespace, release, config_map)
        if cancel and bookings.entries.pop(cancel, None) is None:
            known = ", ".join(map(repr, bookings.entries)) or "none"
            raise UsageError(
                f"--cancel: found no booking {cancel!r}, expected one of ConfigMap {bookings.name}:"
                f" {known}"
            )
        if cancel:
            bookings.write()
            sys.stdout.write(f"Cancelled: {cancel}.\n")
        elif timetable:
            # Else the same would be told of each line.
            bookings.limits({})
            rules = TimetableRules(
                file=timetable,
                zone=read_zone(words["zone"]),
                now=now,
                first_day=first_day,
                limits_of=bookings.limits,
                profiles=bookings.document.get("profiles", ()) if bookings.document else None,
            )
            sys.stdout.write(_book_timetable(bookings, read_timetable(data, rules), rules))
        elif is_listing:
            for entry in bookings.entries.values():
                try:
                    sys.stdout.write(_line(entry, checked(entry, bookings.limits(entry)), now))
                except UsageError as error:
                    sys.stdout.write(f"{entry['name']}: refused: {error}\n")
            sys.stdout.write(
                "" if bookings.entries else f"No bookings in ConfigMap {bookings.name}.\n"
            )
        else:
            sys.stdout.write(_book(bookings, new, now, is_named=bool(name)))
    except ClusterError as error:
        return refuse("book", error)
    return 0


def _book(bookings: _Bookings, entry: dict[str, Any], now: float, *, is_named: bool) -> str:
    """Add a booking or change it; what it means. Raises UsageError, ClusterError."""
    limits = bookings.limits(entry)
    if "profile" in entry and not bookings.document:
        raise UsageError(
            f"--profile: found {entry['profile']!r}, but the ConfigMap of release"
            f" {bookings.release}, which knows profiles, can't be read in namespace"
            f" {bookings.namespace}: say --image and --placeholders instead"
        )
    entry = with_profile(entry, bookings.document.get("profiles", ()))
    event = checked(entry, limits)
    start = first_start_after(event, int(now))
    if start is None:
        here = local_time(now, event.starts.time_zone)
        raise UsageError(
            f"WHEN: found {entry['start']}, which is past, expected a time to come: it is {here}"
        )
    before = bookings.entries.get(event.name)
    if before is not None and not is_named:
        raise UsageError(
            f"--name: found a booking {event.name!r} already; --name {event.name!r} changes it,"
            " another name adds one"
        )
    bookings.entries[event.name] = entry
    bookings.forget_past(now)
    bookings.write()
    was = (
        f" (before: {before.get('people')} people, {before.get('start')})"
        if before is not None
        else ""
    )
    head = f"{'Changed' if before else 'Booked'}: {_line(entry, event, now).rstrip()}{was}"
    return f"{head}.\n{_meaning(bookings, event, start)}"


def _book_timetable(bookings: _Bookings, classes: _Classes, rules: TimetableRules) -> str:
    """Book all classes of a file; what they mean. Raises UsageError, ClusterError."""
    lines: list[str] = []
    booked = changed = 0
    for weekly in classes:
        before = bookings.entries.get(weekly.event.name)
        verdict, was = "As before", ""
        if before is None:
            verdict = "Booked"
            booked += 1
        elif before != weekly.entry:
            verdict = "Changed"
            was = f" (before: {before.get('people')} people, {before.get('start')})"
            changed += 1
        line = _line(weekly.entry, weekly.event, rules.now).rstrip()
        lines.append(f"{verdict}: {line}{was}.\n")
        bookings.entries[weekly.event.name] = dict(weekly.entry)
    bookings.forget_past(rules.now)
    if booked or changed:
        bookings.write()
    same = len(classes) - booked - changed
    file = one_line(rules.file)
    lines.append(f"{file}: {booked} booked, {changed} changed, {same} as before.\n")
    lines.append(_week(bookings, classes))
    lines.append(_too_early(classes, rules))
    lines.append(_others(bookings, classes, file))
    return "".join(lines)


def _week(bookings: _Bookings, classes: _Classes) -> str:
    """What a week of classes brings, set by set, and costs."""
    events = bookings.events
    if not events:
        return _not_checked(bookings)
    lead, settle, most = events["leadMinutes"], events["settleMinutes"], events["maxPlaceholders"]
    lines: list[str] = []
    misfits: list[tuple[str, str]] = []
    for set_name in sorted({weekly.event.set_name for weekly in classes}):
        of_set = [weekly for weekly in classes if weekly.event.set_name == set_name]
        wanted, minute = busiest(of_set, lead + settle)
        seats = min(wanted, most)
        head = f"  Set {set_name} has at most {seats} placeholders more at one time"
        room = bookings.seats(set_name)
        cost = ""
        if room.per_node:
            nodes = -(-seats // room.per_node)
            node_turns = 0
            for weekly in of_set:
                class_seats = min(weekly.event.people, most)
                node_turns += -(-class_seats // room.per_node) * len(weekly.weekdays)
            come, none = (f"{node_turns * kept / 60:.1f}" for kept in (lead, lead + settle))
            hours = f"{come} node-hours more if all come, {none} if nobody does"
            cost = f": about {nodes} nodes ({room.per_node} a node). A week takes {hours}"
        lines.append(f"{head}, {minute_of_week(minute)}{cost}.\n")
        # Whoever books may lack the right to read quotas and pools.
        with suppress(ClusterError):
            misfits += room.misfits(bookings.client, bookings.namespace, seats)
    wanted, minute = busiest(classes, lead + settle)
    if wanted > most:
        asked = f"classes ask for {wanted} placeholders, and events.maxPlaceholders is {most}"
        later = "those that begin later get what is left"
        lines.append(f"  {minute_of_week(minute)} {asked}: {later}.\n")
    at_once, _ = busiest(classes, 1)
    for reason, fix in (*hub_limits(at_once, events), *misfits):
        lines.append(f"  {reason} {fix}\n")
    return "".join(lines)


def _too_early(classes: _Classes, rules: TimetableRules) -> str:
    """Which classes begin before the first day: a booking has months, and no first day."""
    starts = [first_start_after(weekly.event, int(rules.now)) for weekly in classes]
    early = [start for start in starts if start is not None and start <= rules.after]
    if not early:
        return ""
    first = local_time(min(early), rules.zone)
    told = f"Classes that begin before {rules.first_day} (--from): {len(early)}, the first {first}"
    why = "A booking has months, and no first day"
    fix = "To keep no room then, cancel them, and book the file in the week before"
    return f"  {told}. {why}. {fix}.\n"


def _others(bookings: _Bookings, classes: _Classes, file: str) -> str:
    """What stays booked beside the file's classes, and how to take it back."""
    names = {weekly.event.name for weekly in classes}
    others = [name for name in bookings.entries if name not in names]
    if not others:
        return ""
    words = ["roost", "book", "--cancel", others[0], "-n", bookings.namespace]
    if bookings.release != "roost":
        words += ["--release", bookings.release]
    if bookings.name != object_name(base_name(bookings.release), "bookings"):
        words += ["--config-map", bookings.name]
    listed = some([repr(name) for name in others], 10)
    return f"  Not in {file}, and still booked: {listed}. To cancel one: {shlex.join(words)}\n"
