"""The kube-scheduler that Roost runs: the tag of its image and its feature gates, by minor.

Templates read both tables as `keys.scheduler_tags` and `keys.scheduler_gates`, the chart as
constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# A newer cluster gets the newest, an older one the oldest. renovate.json follows these lines.
SCHEDULER_TAGS: Final[Mapping[str, str]] = MappingProxyType(
    {"1.33": "v1.33.13", "1.34": "v1.34.4", "1.35": "v1.35.4", "1.36": "v1.36.3", "1.37": "v1.37.2"}
)

# From each minor on. kube-scheduler doesn't start with a gate that its minor doesn't know.
# Why these two are off: docs/decisions/0015-preemption.md.
SCHEDULER_GATES: Final[Mapping[str, Mapping[str, bool]]] = MappingProxyType(
    {
        "1.33": {"SchedulerAsyncPreemption": False},
        "1.35": {"SchedulerAsyncPreemption": False, "OpportunisticBatching": False},
    }
)
