"""Start phases by class and scheduler profile."""

from __future__ import annotations

from typing import Final

from roost_lab.pages.table import Unit
from roost_lab.report.starts import MAX_DRAWN_PAIRS, starts_section
from roost_lab.report.subject import NO_CLASS, Field


def _profile_name(names: tuple[str, ...]) -> str:
    pod_class, scheduler = names[0] or NO_CLASS, names[1]
    # A profile is mostly called after its class.
    return scheduler if pod_class in scheduler else f"{pod_class}, {scheduler}"


SECTION: Final = starts_section(
    "class",
    "class and scheduler profile",
    (
        Field("pod_class", "class", Unit.TEXT, lambda row: row.names[0] or NO_CLASS),
        Field("scheduler", "profile", Unit.TEXT, lambda row: row.names[1]),
    ),
    lambda starts: starts.by_class,
    about="The API server stores creation, running containers and readiness in whole seconds, so a phase may appear up "
    "to a second longer or shorter than it was. Percentiles are at most 1 % too high.",
    drawn=MAX_DRAWN_PAIRS,
    full_name=_profile_name,
)
