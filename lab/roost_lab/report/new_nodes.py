"""How long new nodes took to be ready and to have their images."""

from __future__ import annotations

from typing import Final

from roost_lab.report.starts import IMAGES, READY, Starts, phase_fields, phase_rows
from roost_lab.report.subject import Section, TableOf

SECTION: Final = Section(
    "new-nodes",
    "New nodes",
    Starts,
    (
        TableOf(
            "new_nodes",
            "New nodes",
            phase_fields("nodes"),
            lambda report: phase_rows(report[Starts].new_nodes, (READY, IMAGES)),
        ),
    ),
    about="Nodes that joined in this period and got every image that the hub's image gate requires.",
)
