"""Start phases by the age of the node."""

from __future__ import annotations

from typing import Final

from roost_lab.pages.table import Unit
from roost_lab.report.starts import starts_section
from roost_lab.report.subject import Field

SECTION: Final = starts_section(
    "node_age",
    "age of the node",
    (Field("node_age", "node", Unit.TEXT, lambda row: row.names[0]),),
    lambda starts: starts.by_node_age,
)
