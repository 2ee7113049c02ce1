"""Read the settings of start notices from release.json."""

from __future__ import annotations

from typing import Final

from roost.controllers.contract.release import ReleaseDocument

# A start that waits shorter isn't told: there is nothing to wait for.
ROOM_SECONDS: Final = 5.0
# A scheduler that is there looks at a pod within moments; after its leader's end another takes over
# within 15 s or so.
SCHEDULER_SECONDS: Final = 8.0
# Warm starts that have to wait for a volume take as long.
PULL_SECONDS: Final = 3.0
# A volume may take so long to attach when nothing is wrong. What lasts longer is told, and again
# after each fourfold of that.
HOLD_UP_SECONDS: Final = 15.0
HOLD_UP_FACTOR: Final = 4.0
# The kubelet says at least so often what still holds a pod up.
HOLD_UP_STALE_SECONDS: Final = 600.0
# What is left is told again at half of it, unless it is shorter than this.
WORTH_TELLING_SECONDS: Final = 10.0
# Events of one pod.
MOST_NOTICES: Final = 5
# The most notices within a minute.
MOST_A_MINUTE: Final = 200


def read_notice_settings(release: ReleaseDocument) -> ReleaseDocument | None:
    """The release, if start notices are switched on in it: they have no other settings."""
    read = release.read
    notices = read.mapping(release.document.get("startNotices"), "startNotices")
    read.known(notices, "startNotices", ("enabled",))
    return release if read.flag(notices.get("enabled"), "startNotices.enabled") else None
