"""Which taints nodes start with until others remove them: Kubernetes, clouds, CNIs or drivers.

Roost's own startup taint counts, too, by its prefix. When that goes: `_judge_taint` in
`node_labels.py`.
"""

from __future__ import annotations

from typing import Final

from roost_core.objects.selectors import Taint
from roost_core.placement.labels import STARTUP_PREFIXES

# Taints that are removed within seconds of a node's start. Until then they keep pullers away, but
# users too.
_STARTUP_KEYS: Final = frozenset(
    {"node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered"}
)
_STARTUP_PREFIXES: Final = ("node.kubernetes.io/", "readiness.k8s.io/", *STARTUP_PREFIXES)
# Cilium's, and those of storage drivers.
_STARTUP_SUFFIX: Final = "/agent-not-ready"


def is_startup_taint(taint: Taint) -> bool:
    """Whether a taint is one that nodes start with and that goes by itself."""
    key = taint.key
    return (
        key in _STARTUP_KEYS or key.startswith(_STARTUP_PREFIXES) or key.endswith(_STARTUP_SUFFIX)
    )
