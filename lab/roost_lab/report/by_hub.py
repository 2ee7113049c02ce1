"""Start phases by hub and class, where there are several hubs."""

from __future__ import annotations

from typing import Final

from roost_lab.pages.table import Unit
from roost_lab.report.starts import MAX_DRAWN_PAIRS, starts_section
from roost_lab.report.subject import Field

SECTION: Final = starts_section(
    "hub",
    "hub",
    (
        Field("hub", "hub", Unit.TEXT, lambda row: row.names[0]),
        Field("pod_class", "class", Unit.TEXT, lambda row: row.names[1]),
    ),
    lambda starts: starts.by_hub,
    nothing="",
    drawn=MAX_DRAWN_PAIRS,
)
