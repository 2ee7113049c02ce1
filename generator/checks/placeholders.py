"""Lint `placeholders` and `placeholder.defaults`: names, windows, and whether they reserve room
where users run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from generator.checks.contract import (
    LintReport,
    Phrase,
    at,
    entry_key,
    listing,
    mapping,
    number,
    text,
)
from generator.faults import Path
from generator.render.functions import complete_placeholder_set
from generator.values.helm_release import Release
from generator.values.merge import Values

DEFAULTS: Final = ("placeholder", "defaults")
_LONG_HOURS: Final = 24


class ListedSet(NamedTuple):
    """One entry of `placeholders`. named: as written; whole: with the inherited defaults."""

    position: int
    named: Values
    whole: Values

    def path(self, key: str) -> Path:
        """The path at which the value of `key` is written."""
        return (
            ("placeholders", self.position, key)
            if self.named.get(key) is not None
            else (*DEFAULTS, key)
        )


def placeholder_sets(report: LintReport) -> Iterator[ListedSet]:
    """The entries of `placeholders`, each with its inherited defaults."""
    defaults = at(report.values, *DEFAULTS)
    for index, entry in enumerate(listing(report.values.get("placeholders"))):
        named = mapping(entry)
        yield ListedSet(index, named, complete_placeholder_set(named, defaults))


def is_wanted(placeholder_set: ListedSet) -> bool:
    """Whether the set has pods at any time."""
    whole = placeholder_set.whole
    return (
        number(whole.get("replicas")) > 0
        or number(at(whole, "learn", "max")) > 0
        or any(number(at(window, "replicas")) > 0 for window in listing(whole.get("windows")))
    )


def check(report: LintReport, _release: Release) -> None:
    """Check every set of placeholders."""
    first: dict[str, int] = {}
    for placeholder_set in placeholder_sets(report):
        name = text(placeholder_set.named.get("name"))
        if name in first:
            path = ("placeholders", placeholder_set.position, "name")
            report.error(
                path, name, f"a name of its own (placeholders[{first[name]}] has it)", "Rename one."
            )
        first.setdefault(name, placeholder_set.position)
        resources = mapping(placeholder_set.whole.get("resources"))
        # What only has a limit requests as much.
        is_empty = not (resources.get("requests") or resources.get("limits"))
        if is_empty and number(placeholder_set.whole.get("replicas")) > 0:
            reason = "a placeholder without requests keeps nothing free."
            report.warn(
                placeholder_set.path("resources"),
                reason,
                "Request at least what one user requests.",
            )
        _lint_dropped(report, placeholder_set)
    _lint_windows(report)


def _lint_windows(report: LintReport) -> None:
    """Check the windows of every set, and that somebody follows them."""
    for index, entry in enumerate(listing(report.values.get("placeholders"))):
        path = ("placeholders", index)
        windows = listing(at(entry, "windows"))
        if windows:
            _lint_calendar(report, (*path, "windows"), windows)
        learns = at(entry, "learn") is not None
        if learns:
            _lint_learn(report, (*path, "learn"), mapping(entry))
        for key, is_used in (("windows", bool(windows)), ("learn", learns)):
            if is_used and at(report.values, "controllers", "enabled") is not True:
                reason = (
                    "only the controllers set the number of placeholders: placeholders[].replicas"
                    " applies."
                )
                report.warn((*path, key), reason, "Set controllers.enabled to true, or remove it.")


def _lint_learn(report: LintReport, path: Path, entry: Values) -> None:
    from roost_core.placement.headroom_windows import TIME_ZONE, is_time_zone  # noqa: PLC0415 - as above

    low, high = number(at(entry, "learn", "min")), number(at(entry, "learn", "max"))
    zone = text(at(entry, "learn", "timeZone"))
    if low > high:
        report.error(
            (*path, "min"),
            at(entry, "learn", "min"),
            f"a number up to max, which is {high:g}",
            "Lower it.",
        )
    if not is_time_zone(zone):
        report.error((*path, "timeZone"), zone, TIME_ZONE, "Correct the name.")


def _lint_calendar(report: LintReport, path: Path, windows: list[object]) -> None:
    # Cron texts and zones: most values have none.
    from roost_core.placement.headroom_windows import longest_and_hours, never_holds  # noqa: PLC0415
    from roost_core.release.reader import Reader  # noqa: PLC0415
    from roost_core.release.windows import parse_windows  # noqa: PLC0415

    read = Reader()
    parsed = parse_windows(read, windows, "")
    for fault in read.faults:
        report.error((*path, *entry_key(fault.key)), Phrase(fault.found), fault.expected)
    by_name = {window.name: window for window in parsed}
    for position, entry in enumerate(windows):
        window = by_name.get(text(at(entry, "name")))
        if window is None:
            continue
        if never_holds(window):
            reason = "the window is always empty: it starts and ends at the same time."
            report.warn((*path, position, "end"), reason, "Give it another end.")
            continue
        if not report.with_hints:
            continue
        longest, hours = longest_and_hours(window)
        # Fields three and five; cron takes a day that either names.
        days = [
            field
            for field in window.start.split()[2:3] + window.start.split()[4:5]
            if field[0] != "*"
        ]
        if longest > _LONG_HOURS or len(days) > 1:
            either = (
                "its start names days of the month and of the week, and cron takes either; "
                if days[1:]
                else ""
            )
            reason = (
                f"{either}it lasts up to {round(longest, 1):,g} hours, {hours:,.0f}"
                " placeholder-hours a week."
            )
            fix = "If that isn't meant: let end name each day that start does, after its last hour."
            report.hint((*path, position, "start"), reason, fix)


def _lint_dropped(report: LintReport, placeholder_set: ListedSet) -> None:
    """Warn about a list without the tolerations of the user pools: it replaces the list of the
    defaults.
    """
    # What a set learns are users where its pods can go: without any, it keeps nothing.
    fixed = placeholder_set._replace(whole={**placeholder_set.whole, "learn": None})
    if placeholder_set.named.get("tolerations") is None or not is_wanted(fixed):
        return
    own_tolerations = listing(placeholder_set.named.get("tolerations"))
    dropped = [
        show_toleration(mapping(toleration))
        for toleration in listing(at(report.values, *DEFAULTS, "tolerations"))
        if not any(covers(mapping(other), mapping(toleration)) for other in own_tolerations)
    ]
    if dropped:
        reason = (
            f"leaves out {' and '.join(dropped)} of placeholder.defaults.tolerations: these"
            " placeholders keep no room on nodes with that taint, and may take room of core nodes"
            " instead."
        )
        fix = "Add it, or leave `tolerations` out of the entry to inherit it."
        report.warn(placeholder_set.path("tolerations"), reason, fix)


def covers(toleration: Values, other: Values) -> bool:
    """Whether `toleration` tolerates every taint that `other` does."""
    if toleration.get("effect") and toleration.get("effect") != other.get("effect"):
        return False
    if toleration.get("operator") == "Exists":
        return not toleration.get("key") or toleration.get("key") == other.get("key")
    same = all((toleration.get(key) or "") == (other.get(key) or "") for key in ("key", "value"))
    return same and other.get("operator") != "Exists"


def show_toleration(toleration: Values) -> str:
    """A toleration as `kubectl taint` writes the taint."""
    key, value = text(toleration.get("key")) or "*", text(toleration.get("value"))
    effect = text(toleration.get("effect"))
    return f"{key}{f'={value}' if value else ''}{f':{effect}' if effect else ''}"
