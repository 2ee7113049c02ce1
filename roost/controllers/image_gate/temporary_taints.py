"""Which taints go by themselves soon after a node starts: those of Kubernetes, clouds, networks
and drivers.

Roost's own startup taint counts, too, by its prefix. When Roost removes that: `_judge_taint` in
`node_labels.py`.
"""

from __future__ import annotations

from typing import Final

from roost_core.objects.selectors import Taint
from roost_core.placement.labels import STARTUP_PREFIXES

# Others remove these within seconds of a node's start. Until then they keep pullers away, and users
# too.
_KEYS: Final = frozenset(
    {"node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered"}
)
_PREFIXES: Final = ("node.kubernetes.io/", "readiness.k8s.io/", *STARTUP_PREFIXES)
# Cilium's, and those of storage drivers.
_SUFFIX: Final = "/agent-not-ready"


def goes_by_itself(taint: Taint) -> bool:
    """Whether nodes start with a taint that somebody removes soon."""
    key = taint.key
    return key in _KEYS or key.startswith(_PREFIXES) or key.endswith(_SUFFIX)
