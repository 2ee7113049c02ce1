"""Start phases by image: an example to copy, of a section that stands on the numbers of another."""

from __future__ import annotations

from typing import Final

from roost_lab.pages.table import Unit
from roost_lab.report.starts import starts_section
from roost_lab.report.subject import Field

SECTION: Final = starts_section(
    "image",
    "image",
    (Field("image", "image", Unit.TEXT, lambda row: row.names[0]),),
    lambda starts: starts.by_image,
    nothing="No pod with an image started in this period.",
)
