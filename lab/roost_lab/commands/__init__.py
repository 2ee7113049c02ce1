"""The lab's commands, one module for each, which is its `command`. They appear under `roost` by an entry point."""

from typing import Final

from roost.cli import CommandEntry, CommandGroup

GROUPS: Final = (
    CommandGroup(
        "watch",
        {
            "why": CommandEntry("roost_lab.commands.why", "Explain where a pod was placed, and what it waited for."),
            "view": CommandEntry(
                "roost_lab.commands.view", "Show the recorded cluster in a browser, now or at any time."
            ),
            "top": CommandEntry(
                "roost_lab.commands.top", "Draw nodes, users, placeholders, builds and pulls live in the terminal."
            ),
            "report": CommandEntry("roost_lab.commands.report", "Summarize the record: an HTML page, or its numbers."),
        },
    ),
    CommandGroup(
        "record",
        {
            "record": CommandEntry(
                "roost_lab.commands.record", "Record scheduling decisions and start phases until SIGTERM."
            ),
            "records": CommandEntry(
                "roost_lab.commands.records", "Export recorded starts, or import your cluster's Events."
            ),
        },
    ),
    CommandGroup(
        "study",
        {
            "simulate": CommandEntry(
                "roost_lab.commands.simulate", "Replay launches under values files, and compare the outcomes."
            )
        },
    ),
    CommandGroup(
        "events",
        {
            "book": CommandEntry("roost_lab.commands.book", "Book room for so many people at a time; list and cancel."),
            "rehearse": CommandEntry(
                "roost_lab.commands.rehearse", "Play an event's day with and without a booking: waits and node-hours."
            ),
        },
    ),
)
