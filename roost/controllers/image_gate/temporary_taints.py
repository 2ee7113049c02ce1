"""Which taints go by themselves soon after a node starts.

Kubernetes, clouds, networks and storage drivers set them. Roost's startup taint counts, too:
`_judge_taint` in `node_labels.py` decides when it goes.
"""

from __future__ import annotations

from typing import Final

from roost_core.objects.selectors import Taint
from roost_core.placement.labels import STARTUP_PREFIXES

# These go within seconds of a node's start. Until then, they keep pullers and users away.
_KEYS: Final = frozenset(
    {"node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered"}
)
_PREFIXES: Final = ("node.kubernetes.io/", "readiness.k8s.io/", *STARTUP_PREFIXES)
# Taints of Cilium and of storage drivers end so.
_SUFFIX: Final = "/agent-not-ready"


def goes_by_itself(taint: Taint) -> bool:
    """Whether a taint is of the kind that nodes start with, and that somebody removes soon."""
    key = taint.key
    return key in _KEYS or key.startswith(_PREFIXES) or key.endswith(_SUFFIX)
