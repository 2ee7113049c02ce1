"""`roost seating`: start the servers of a class's people before it begins."""

from typing import Final

from roost.commands.options import program
from roost.seating.main import serve
from roost.seating.seating_options import SeatingOptions

command: Final = program(
    "seating",
    SeatingOptions,
    serve,
    """Start the servers of booked people before their class, until SIGTERM.

    \b
    roost seating --settings release.json --bookings events.yaml \\
        --hub-url http://hub:8081/hub/api --token-file token
    """,
)
