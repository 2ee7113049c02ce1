"""Lint `events`: bookings of the values, and whether anybody could follow them."""

from __future__ import annotations

from generator.checks.contract import LintReport, Phrase, entry_key
from generator.checks.faulty_keys import is_sound, sound_entries
from generator.values.lookups import child, listing, mapping, number
from generator.values.release_name import Release


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
    if child(report.values, "controllers", "enabled") is not True:
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

    reader = Reader()
    # Entries whose form is right, by their place in the list.
    sound = {place: entry for place, entry in sound_entries(booked) if is_sound(entry)}
    most_people = int(number(child(report.values, "events", "maxPeople")))
    # Without any set, each booking would be a fault: the warning of `check` is enough.
    sets = bookable_sets(report.written) or ("",)
    events = parse_events(reader, list(sound.values()), "", Limits(sets, most_people))
    for event in events:
        for reason, fix in hub_limits(event.people, mapping(report.values.get("events"))):
            report.warn(("events", "booked"), f"of {event.name}: {reason}", fix)
    places = list(sound)
    for fault in reader.faults:
        path = entry_key(fault.key)
        if path:
            # The reader read the sound entries alone, so its index counts these.
            path = (places[int(path[0])], *path[1:])
        report.error(("events", "booked", *path), Phrase(fault.found), fault.expected)
