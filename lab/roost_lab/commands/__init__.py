"""The lab's commands. Each has a module here, whose function `command` it is.

`book_calendar.py` is a part of `book.py`. An entry point adds these groups to the command `roost`.
"""

from typing import Final

from roost.cli import CommandGroup

GROUPS: Final = (
    CommandGroup(
        "watch",
        {
            "why": "Explain where a pod was placed, and what it waited for.",
            "view": "Show the recorded cluster in a browser, now or at any time.",
            "top": "Draw nodes, users, placeholders, builds and pulls live in the terminal.",
            "report": "Summarize the record: an HTML page, or its numbers.",
        },
        __name__,
    ),
    CommandGroup(
        "record",
        {
            "record": "Record scheduling decisions and start phases until SIGTERM.",
            "records": "Export recorded starts, or import your cluster's Events.",
        },
        __name__,
    ),
    CommandGroup(
        "study",
        {"simulate": "Replay launches under values files, and compare the outcomes."},
        __name__,
    ),
    CommandGroup(
        "events",
        {
            "book": "Book room for so many people at a time; list and cancel.",
            "rehearse": (
                "Play an event's day with and without a booking, or say whether Roost helps a hub."
            ),
        },
        __name__,
    ),
)
