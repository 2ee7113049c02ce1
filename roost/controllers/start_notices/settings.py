"""Read the settings of start notices from release.json."""

from __future__ import annotations

from typing import Final

from roost.controllers.contract.release import ReleaseDocument

# A start that waits for room for less time than this gives no notice.
ROOM_SECONDS: Final = 5.0
# A pod that waits for its scheduler for less time than this gives no notice. A running scheduler
# looks at a pod at once. After a leader's end, another takes over within about 15 s.
SCHEDULER_SECONDS: Final = 8.0
# A pull that takes less time than this gives no notice: some warm starts wait as long for a volume.
PULL_SECONDS: Final = 3.0
# Attaching a volume may take this long although nothing is wrong. A start that is held up for
# longer gives a notice. The next follows after four times as long, and so on.
HOLD_UP_SECONDS: Final = 15.0
HOLD_UP_FACTOR: Final = 4.0
# The kubelet repeats at least this often what holds a pod up. An older report no longer counts.
HOLD_UP_STALE_SECONDS: Final = 600.0
# The time left is given again when half of it is over, unless it is shorter than this.
WORTH_TELLING_SECONDS: Final = 10.0
# The most notices about one pod.
MOST_NOTICES: Final = 5
# The most notices within a minute.
MOST_A_MINUTE: Final = 200


def read_notice_settings(release: ReleaseDocument) -> ReleaseDocument | None:
    """The release, if start notices are switched on; else None.

    Start notices have no settings besides the release's.
    """
    read = release.read
    notices = read.mapping(release.document.get("startNotices"), "startNotices")
    read.known(notices, "startNotices", ("enabled",))
    return release if read.flag(notices.get("enabled"), "startNotices.enabled") else None
