"""The kube-scheduler that Roost runs: the tag of its image by the cluster's minor, and its
feature gates by kube-scheduler's minor.

Templates read both tables as `keys.scheduler_tags` and `keys.scheduler_gates`, the chart as
constants.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# By the cluster's minor. A newer cluster gets the newest tag, an older cluster the oldest.
# renovate.json finds these lines by their form.
SCHEDULER_TAGS: Final[Mapping[str, str]] = MappingProxyType(
    {"1.33": "v1.33.13", "1.34": "v1.34.4", "1.35": "v1.35.4", "1.36": "v1.36.3", "1.37": "v1.37.2"}
)

# The gates of kube-schedulers of this minor or newer, up to the next entry. kube-scheduler doesn't
# start with a gate that it doesn't know. Why these two are off: docs/decisions/0015-preemption.md.
SCHEDULER_GATES: Final[Mapping[str, Mapping[str, bool]]] = MappingProxyType(
    {
        "1.0": {},
        "1.32": {"SchedulerAsyncPreemption": False},
        "1.35": {"SchedulerAsyncPreemption": False, "OpportunisticBatching": False},
    }
)

# kube-scheduler with more plugins (scheduler-plugins) is tagged v0.34.4 for 1.34. A minor has two
# digits: the tags 0.3.1 and 2026.11 are versions of something else.
_TAG: Final = re.compile(r"v?[01]\.([0-9]{2})(?![0-9])")


def minor_of_tag(tag: str) -> int | None:
    """The minor of the kube-scheduler in an image: 37 for v1.37.2. None: the tag doesn't say it."""
    match = _TAG.match(tag)
    return int(match[1]) if match is not None else None
