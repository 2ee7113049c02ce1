"""Read the settings of start notices from controllers.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roost_core.placement.settings import PodClass, read_pod_classes
from roost_core.placement.settings_reader import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_core.placement.settings_reader import Document

# A start that waits shorter isn't told: there is nothing to wait for.
ROOM_SECONDS: Final = 5.0
# As long as warm starts take that have to wait for a volume.
PULL_SECONDS: Final = 3.0
# What is left is told again at half of it, unless it is shorter than this.
WORTH_TELLING_SECONDS: Final = 10.0
# Events of one pod.
MOST_NOTICES: Final = 5
# Of all pods within a minute: all controllers share a minute's writes, and the image gate can't wait for the next.
MOST_A_MINUTE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeSettings:
    """`startNotices`, and what else the plan needs of the release."""

    namespace: str
    classes: Mapping[str, PodClass]


def read_notice_settings(read: Reader, document: Document) -> NoticeSettings | None:
    """Read controllers.json; None when start notices are switched off. Faults go to the reader."""
    notices = read.mapping(document.get("startNotices"), "startNotices")
    if not notices or not read.flag(notices.get("enabled", False), "startNotices.enabled"):
        return None
    read.known(notices, "startNotices", ("enabled",))
    # The mover reads the same, and reports its faults.
    classes = read_pod_classes(Reader(), document)
    return NoticeSettings(namespace=read.text(document.get("namespace"), "namespace"), classes=classes)
