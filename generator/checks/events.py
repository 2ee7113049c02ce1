"""Lint `events`: bookings of the values, and whether anybody could follow them."""

from __future__ import annotations

from generator.checks.contract import LintReport, Phrase, at, entry_key, listing, mapping, number
from generator.checks.faulty_keys import is_sound, sound_entries
from generator.values.helm_release import Release


def check(report: LintReport, _release: Release) -> None:
    """Check what is booked in the values, and that the controllers can keep room for it."""
    events = mapping(report.values.get("events"))
    booked = listing(events.get("booked"))
    if booked:
        with report.part():
            _lint_booked(report, booked)
    if events.get("enabled") is not True:
        if booked:
            reason = "events.enabled is false, so nothing is kept for these events."
            report.warn(("events", "booked"), reason, "Set events.enabled to true.")
        return
    path = ("events", "enabled")
    if at(report.values, "controllers", "enabled") is not True:
        report.warn(
            path, "only the controllers keep room for events.", "Set controllers.enabled to true."
        )
    elif not report.values.get("placeholders"):
        reason = "no entry of placeholders, so every booking is refused."
        report.warn(path, reason, "Add an entry; replicas: 0 keeps nothing outside events.")


def _lint_booked(report: LintReport, booked: list[object]) -> None:
    # Cron texts and zones: most values have none.
    from roost_core.release.bookings import Limits, bookable_sets, hub_limits, parse_events  # noqa: PLC0415
    from roost_core.release.reader import Reader  # noqa: PLC0415

    read = Reader()
    sound = [(position, entry) for position, entry in sound_entries(booked) if is_sound(entry)]
    people = int(number(at(report.values, "events", "maxPeople")))
    entries = [entry for _, entry in sound]
    # Without any set, one warning is enough.
    events = parse_events(read, entries, "", Limits(bookable_sets(report.written) or ("",), people))
    for event in events:
        for reason, fix in hub_limits(event.people, mapping(report.values.get("events"))):
            report.warn(("events", "booked"), f"of {event.name}: {reason}", fix)
    for fault in read.faults:
        path = entry_key(fault.key)
        if path:
            path = (sound[int(path[0])][0], *path[1:])
        report.error(("events", "booked", *path), Phrase(fault.found), fault.expected)
