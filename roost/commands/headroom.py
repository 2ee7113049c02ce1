"""`roost headroom`: how many placeholders the values ask for in the coming days, and what they come
to.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any, Final

import click

from generator.faults import UsageError, printable_lines, raise_errors
from generator.pipeline import find_faults
from generator.render.functions import complete_placeholder_set
from generator.render.read_manifests import read_manifests
from generator.values.files import read_values
from generator.values.release_name import Release
from roost.commands.headroom_history import as_config_map, read_histories
from roost.commands.options import RenderOptions, values_options
from roost.controllers.headroom.quota_room import Demand, UseByStatus, cut_by
from roost_core.objects.quotas import read_container_defaults, read_quota
from roost_core.placement.headroom_cut import cut_classes
from roost_core.placement.headroom_forecast import (
    WAVE_MINUTES,
    Likeness,
    Rises,
    earlier_minutes,
    forecast_need,
    learned_replicas,
    look_ahead,
)
from roost_core.placement.headroom_history import DAY_MINUTES, UNSEEN, History
from roost_core.placement.headroom_windows import (
    ReplicaChange,
    Window,
    changes_between,
    local_time,
    parse_moment,
    period_at,
    replica_hours,
)
from roost_core.placement.headroom_worth import Ceiling, Worth, worth_of
from roost_core.placement.labels import base_name, cluster_object_name, object_name
from roost_core.release.bookings import FIRST_YEAR, LAST_YEAR, in_range
from roost_core.release.reader import Reader
from roost_core.release.windows import parse_windows

DAY_SECONDS: Final = 86_400
# Learned numbers may differ each minute: the greatest is told, of each third one.
STEP_SECONDS: Final = 900
LOOK_MINUTES: Final = 3
# The last ones are told.
MOST_LATE_CLASSES: Final = 20
# An explanation rests on so many weeks.
MOST_EXPLAINED_WEEKS: Final = 4
# In place of a window's name, which has no space.
LEARNED: Final = "as learned"


def _why_without_effect(values: Mapping[str, Any]) -> str:
    """Why nobody will keep windows and count nodes; empty where the controllers do."""
    if not values["enabled"]:
        return "enabled is false, so nothing is rendered"
    if not values["controllers"]["enabled"]:
        return (
            "controllers.enabled is false;"
            " the number stays as the values' replicas, or as somebody set it"
        )
    return ""


def _begin(at: str | None, zone: str) -> float:
    if at is None:
        return time.time() // 60 * 60
    if not in_range(at):
        raise UsageError(f"--at: found {at!r}, expected a year from {FIRST_YEAR} to {LAST_YEAR}")
    try:
        return parse_moment(at, zone)
    except ValueError:
        expected = "a date-time like 2026-10-01T08:00 (in the windows' zone) or 2026-10-01T06:00Z"
        raise UsageError(f"--at: found {at!r}, expected {expected}") from None


def _learned_changes(
    placeholder_set: Mapping[str, Any],
    windows: Sequence[Window],
    history: History,
    begin: float,
    end: float,
    *,
    per_node: int,
) -> Iterator[ReplicaChange]:
    """Yield each change of the number that the controllers would keep if nothing more were
    learned.
    """
    learn = placeholder_set["learn"]
    worth, _ = _worths(placeholder_set, history, per_node)
    rises = Rises(history)
    moment = begin
    before: tuple[int, tuple[str, ...]] | None = None
    while moment < end:
        period = period_at(windows, placeholder_set["replicas"], moment)
        until = min((moment // STEP_SECONDS + 1) * STEP_SECONDS, period.until or end)
        replicas = 0
        by_windows = True
        for minute in range(int(moment // 60), ceil(until / 60), LOOK_MINUTES):
            outlook = look_ahead(history, minute, learn["timeZone"], rises)
            seats = forecast_need(outlook, None, worth).worth if outlook else 0
            needed = learned_replicas(period, outlook, seats, learn["min"], learn["max"])
            replicas = max(replicas, needed)
            by_windows = outlook is None or (bool(period.windows) and replicas == period.replicas)
        now = (replicas, period.windows if by_windows else (LEARNED,))
        if now != before:
            yield ReplicaChange(moment, *now)
        before = now
        moment = until


def _worths(
    placeholder_set: Mapping[str, Any], history: History, per_node: int
) -> tuple[Worth, Worth]:
    """What waiting is worth on the set's nodes, with the ceiling of cost and without it."""
    prices = placeholder_set["prices"]
    uncut = worth_of(
        prices["waitingHour"] / prices["nodeHour"],
        per_node,
        history.ahead_minutes,
        seats_per_person=history.seats_per_person,
    )
    return _ceiling(placeholder_set, history).cut(uncut), uncut


def _ceiling(placeholder_set: Mapping[str, Any], history: History) -> Ceiling:
    """What learning has cost in thirty days, and may."""
    prices = placeholder_set["prices"]
    return Ceiling.of(
        history.account,
        waiting_hour_price=prices["waitingHour"],
        node_hour_price=prices["nodeHour"],
        monthly_ceiling=prices.get("monthlyCeiling"),
    )


def _basis(placeholder_set: Mapping[str, Any], history: History) -> str:
    """What the forecast rests on."""
    zone = placeholder_set["learn"]["timeZone"]
    if not history.levels:
        return f"{placeholder_set['name']}: nothing is learned yet\n"
    first = local_time(history.first * 60.0, zone)
    last = local_time(history.end * 60.0, zone)
    days = history.seen_minutes / DAY_MINUTES
    return f"{placeholder_set['name']}: learned from {days:.0f} days, {first} to {last}\n"


def _account_lines(placeholder_set: Mapping[str, Any], history: History) -> Iterator[str]:
    """What learning saved and cost, week by week, and which classes were late."""
    account = history.account
    zone = placeholder_set["learn"]["timeZone"]
    if account.weeks:
        yield (
            "  week of     starts   late  people's hours saved"
            "  node-hours net  hours saved a node-hour\n"
        )
    for week in account.weeks:
        day = local_time(week.begin * 60.0, zone).split()[1]
        late = f"{100 * week.late / week.people:.1f} %" if week.people else "-"
        ratio = "costs nothing"
        if week.net_node_hours > 0:
            ratio = f"{week.saved_hours / week.net_node_hours:.1f}"
        yield (
            f"  {day} {week.people:>7} {late:>6} {week.saved_hours:>21.1f}"
            f" {week.net_node_hours:>15.1f} {ratio:>24}\n"
        )
    for late_class in account.late_classes[-MOST_LATE_CLASSES:]:
        at = local_time(late_class.minute * 60.0, zone)
        yield (
            f"  late: {at}, {late_class.late} of {late_class.people} people waited:"
            f" {late_class.why}\n"
        )


def _ceiling_lines(
    placeholder_set: Mapping[str, Any], history: History, begin: float, end: float, per_node: int
) -> Iterator[str]:
    """Which classes will wait because of the ceiling of cost, and what room for them costs."""
    prices = placeholder_set["prices"]
    zone = placeholder_set["learn"]["timeZone"]
    worth, uncut = _worths(placeholder_set, history, per_node)
    ceiling = _ceiling(placeholder_set, history)
    spent = f"{ceiling.spent:.2f} of {ceiling.most:.2f} are spent in thirty days"
    if worth == uncut:
        if history.account.weeks:
            yield f"  the ceiling of cost (prices): {spent}\n"
        return
    yield (
        f"  the ceiling of cost (prices): {spent}; waiting counts {ceiling.left:.0%} of its price\n"
    )
    first = int(begin // 60)
    minutes = int((end - begin) // 60)
    for cut in cut_classes(history, first, minutes, zone, worth=worth, uncut=uncut):
        cost = f"{cut.node_hours:.1f} node-hours ({cut.node_hours * prices['nodeHour']:.2f})"
        at = local_time(cut.minute * 60.0, zone)
        yield (
            f"  will wait: {at}, {cut.people} people, seats for {cut.seats};"
            f" room for all costs about {cost}\n"
        )


def _explanation(history: History, zone: str, moment: float) -> str:
    """What the last weeks had from a time on; where it is known who has come, from when their wave
    may have begun.
    """
    minute = int(moment // 60)
    end = minute + history.ahead_minutes
    have_come = ""
    five_ago = history.at(minute - WAVE_MINUTES)
    now = history.at(minute)
    if UNSEEN not in (five_ago, now):
        minute -= WAVE_MINUTES
        have_come = f"; {max(0, now - five_ago)} have come"
    came: list[int] = []
    for earlier in earlier_minutes(history, minute, zone):
        growth = history.growth(earlier.at, end - minute)
        if earlier.likeness is Likeness.SAME_WEEKDAY and growth is not None:
            came.append(growth)
    came = came[:MOST_EXPLAINED_WEEKS]
    weekday, _, begin, _ = local_time(minute * 60.0, zone).split()
    _, _, until, _ = local_time(end * 60.0, zone).split()
    if not came:
        return f"  no {weekday} before this one was seen at {begin}{have_come}\n"
    people = f"{min(came)} to {max(came)} more people"
    return (
        f"  on the last {len(came)} {weekday}, {people} came from {begin} to {until}{have_come}\n"
    )


def _lines(
    placeholder_set: Mapping[str, Any],
    windows: Sequence[Window],
    changes: Sequence[ReplicaChange],
    end: float,
    per_node: int | None,
) -> Iterator[str]:
    """What is said of one set. per_node: how many of its placeholders a node holds; None: nobody
    knows.
    """
    zone = _zone_of(placeholder_set, windows)
    yield f"{placeholder_set['name']} (placeholders, times of {zone})\n"
    zones = {window.name: window.time_zone for window in windows} | {LEARNED: zone}
    width = max(len(str(change.replicas)) for change in changes)
    for change in changes:
        why = ", ".join(
            name if zones[name] == zone else f"{name} ({local_time(change.at, zones[name])} there)"
            for name in change.windows
        )
        yield f"  {local_time(change.at, zone)}  {change.replicas:>{width}}  {why or 'no window'}\n"
    hours = round((end - changes[0].at) / 3600)
    placeholder_hours = _number(replica_hours(changes, end))
    if per_node is None:
        yield (
            f"  {hours} hours: {placeholder_hours} placeholder-hours."
            " --per-node N (how many fit a node) says node-hours and money\n"
        )
        return
    node_hours = replica_hours(changes, end, per_node)
    price = placeholder_set["prices"]["nodeHour"]
    yield (
        f"  {hours} hours: {placeholder_hours} placeholder-hours,"
        f" {_number(node_hours)} node-hours at most ({per_node} a node),"
        f" {node_hours * price:,.2f} at {price:g} a node-hour (prices.nodeHour)\n"
    )


def _quota_line(
    placeholder_set: Mapping[str, Any], most: int, people: int, path: str, release: Release
) -> str:
    """What quotas of the release's namespace leave of a set's greatest number."""
    manifests: Any = read_manifests(path)
    bodies = [
        {**body, "metadata": {"namespace": release.namespace, **body["metadata"]}}
        for body in manifests.values()
    ]
    here = [body for body in bodies if body["metadata"]["namespace"] == release.namespace]
    quotas = [read_quota(body) for body in here if body["kind"] == "ResourceQuota"]
    defaults = [read_container_defaults(body) for body in here if body["kind"] == "LimitRange"]
    name = placeholder_set["name"]
    own_class = cluster_object_name(release.name, release.namespace, "placeholder")
    demand = Demand(name, most, people, placeholder_set["resources"] or {}, own_class)
    cut = cut_by([demand], quotas, defaults, UseByStatus()).get(name)
    if cut is None:
        return f"  quotas: room for all {most}\n"
    # The file may be anybody's.
    return printable_lines(f"  quotas: {cut.replicas} of {most} at most: {cut.why}\n")


def _zone_of(placeholder_set: Mapping[str, Any], windows: Sequence[Window]) -> str:
    """The zone that a set's times are told in."""
    if windows:
        return windows[0].time_zone
    return str(placeholder_set["learn"]["timeZone"]) if placeholder_set["learn"] else "UTC"


def _number(hours: float) -> str:
    return f"{hours:,.1f}".removesuffix(".0")


@click.command("headroom")
@values_options
@click.option(
    "--at",
    metavar="TIME",
    help="Start, such as 2026-10-01T08:00 in the windows' time zone, or with Z. Default: now.",
)
@click.option("--days", type=click.IntRange(1, 366), default=7, show_default=True)
@click.option(
    "--per-node",
    metavar="N",
    type=click.IntRange(1),
    help="How many placeholders fit a node. Default: as the history says.",
)
@click.option(
    "--history",
    "config_map",
    metavar="FILE",
    default="",
    help="The controllers' ConfigMap of what they learned; - is stdin.",
)
@click.option(
    "--launches",
    metavar="FILE",
    default="",
    help="Learn from lines of roost records export instead; - is stdin.",
)
@click.option(
    "--prometheus",
    metavar="URL|FILE",
    default="",
    help="Learn from Prometheus, or from its answer to query_range.",
)
@click.option(
    "--quotas",
    metavar="PATH",
    default="",
    help="Say what ResourceQuotas of this file or folder leave room for.",
)
@click.option(
    "--explain",
    "explains",
    is_flag=True,
    help="Say what learned numbers rest on at the start, in people.",
)
@click.option(
    "--config-map",
    "prints_config_map",
    is_flag=True,
    help="Print a ConfigMap for the controllers to go on from.",
)
def command(
    *,
    options: RenderOptions,
    at: str | None,
    days: int,
    per_node: int | None,
    config_map: str,
    launches: str,
    prometheus: str,
    quotas: str,
    explains: bool,
    prints_config_map: bool,
) -> int:
    """Print each change of each placeholder set in the coming days, with placeholder-hours
    and node-hours.

    With a history, sets that learn show what they would have if nothing more were learned.

    \b
    roost headroom -f values.yaml --per-node 14
    kubectl get configmap roost-headroom-history -o yaml |
        roost headroom -f values.yaml --history - --days 1
    roost records export --database roost.db |
        roost headroom -f values.yaml --launches - --config-map
    roost headroom -f values.yaml -n jhub --prometheus http://localhost:9090 --config-map
    """
    merged = read_values(options.files, options.settings)
    for fault in raise_errors(find_faults(merged, options.release)):
        sys.stderr.write(f"{fault}\n")
    values: Any = merged.values
    defaults = values["placeholder"]["defaults"]
    sets: list[dict[str, Any]] = [
        complete_placeholder_set(placeholder_set, defaults)
        for placeholder_set in values["placeholders"]
    ]
    if not sets:
        sys.stdout.write("no placeholder sets\n")
    sources = {"--history": config_map, "--launches": launches, "--prometheus": prometheus}
    histories = read_histories(sources, sets, options.release.namespace)
    if prints_config_map:
        if not any(sources.values()):
            raise UsageError(
                "--config-map: found no history, expected --launches or --prometheus beside it"
            )
        if not all(history.levels for history in histories.values()):
            raise UsageError(
                "--config-map: found no server in the source, expected some:"
                " nothing would stay learned"
            )
        base = base_name(options.release.name, values.get("fullnameOverride"))
        name = object_name(base, "headroom-history")
        sys.stdout.write(as_config_map(histories, name, options.release.namespace))
        return 0
    without = _why_without_effect(values)
    for placeholder_set in sets:
        windows = parse_windows(Reader(), placeholder_set.get("windows"), "windows")
        history = histories.get(placeholder_set["name"])
        known_fit = per_node or (history.per_node if history is not None else 0) or None
        fit = known_fit or 1
        begin = _begin(at, _zone_of(placeholder_set, windows))
        end = begin + days * DAY_SECONDS
        if placeholder_set["learn"] and history is not None:
            sys.stdout.write(_basis(placeholder_set, history))
            if explains:
                sys.stdout.write(_explanation(history, placeholder_set["learn"]["timeZone"], begin))
            sys.stdout.writelines(_account_lines(placeholder_set, history))
            sys.stdout.writelines(_ceiling_lines(placeholder_set, history, begin, end, fit))
            changes = list(
                _learned_changes(placeholder_set, windows, history, begin, end, per_node=fit)
            )
        else:
            changes = list(changes_between(windows, placeholder_set["replicas"], begin, end))
        sys.stdout.writelines(_lines(placeholder_set, windows, changes, end, known_fit))
        if quotas:
            most = max(change.replicas for change in changes)
            peak = max(history.levels, default=0) if history is not None else 0
            sys.stdout.write(
                _quota_line(placeholder_set, most, max(most, peak), quotas, options.release)
            )
        if placeholder_set["learn"] and history is None:
            sys.stdout.write(
                "  learn: say --history, --launches or --prometheus to see what it would keep\n"
            )
        if without and (windows or placeholder_set["learn"]):
            what = "windows" if windows else "learn"
            sys.stdout.write(f"  {what} without effect: {without}\n")
    return 0
