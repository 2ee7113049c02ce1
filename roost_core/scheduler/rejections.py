"""Why nodes can't take a pod, in kube-scheduler's words."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from roost_core.scheduler.node_rows import NodeRow


class Rejection(NamedTuple):
    """Why a node can't take a pod."""

    reasons: tuple[str, ...]
    # Whether the node couldn't take the pod even after pre-emption.
    unresolvable: bool


# A filter. None: the pod fits, as far as this filter is concerned.
Check = Callable[[NodeRow], Rejection | None]


def count_reasons(rejections: Mapping[str, Rejection]) -> Counter[str]:
    """How many nodes each reason excludes. rejections: by the node's name."""
    counts = Counter[str]()
    for rejection in rejections.values():
        counts.update(rejection.reasons)
    return counts


def no_node_text(nodes: int, rejections: Mapping[str, Rejection], absent: Rejection) -> str:
    """kube-scheduler's sentence about a pod that no node can take.

    It has each reason with its number of nodes. nodes: how many nodes there are. rejections: by the
    node's name. absent: why the nodes without a rejection can't take the pod.
    """
    counts = count_reasons(rejections)
    without_rejection = nodes - len(rejections)
    if without_rejection > 0:
        counts.update(dict.fromkeys(absent.reasons, without_rejection))
    # Sorted as texts, so 10 comes before 2, as in kube-scheduler.
    reasons = sorted(f"{number} {reason}" for reason, number in counts.items())
    text = f"0/{nodes} nodes are available:"
    return f"{text} {', '.join(reasons)}." if reasons else text
