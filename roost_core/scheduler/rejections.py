"""Why nodes can't take a pod, in kube-scheduler's words: what each filter answers, and the sentence
about all nodes.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from roost_core.scheduler.node_rows import NodeRow


class Rejection(NamedTuple):
    """Why a node can't take a pod. `unresolvable`: not even pre-emption would help there."""

    reasons: tuple[str, ...]
    unresolvable: bool


Check = Callable[[NodeRow], Rejection | None]


def count_reasons(rejections: Mapping[str, Rejection]) -> Counter[str]:
    """How many nodes each reason excludes."""
    return Counter(reason for rejection in rejections.values() for reason in rejection.reasons)


def no_node_text(nodes: int, rejections: Mapping[str, Rejection], absent: Rejection) -> str:
    """kube-scheduler's sentence about nodes that can't be used: reasons with their number, sorted
    as texts.

    absent: what counts for each of the nodes of which nothing is said.
    """
    counts = count_reasons(rejections)
    if len(rejections) < nodes:
        counts.update(dict.fromkeys(absent.reasons, nodes - len(rejections)))
    reasons = sorted(f"{number} {reason}" for reason, number in counts.items())
    text = f"0/{nodes} nodes are available:"
    return f"{text} {', '.join(reasons)}." if reasons else text
