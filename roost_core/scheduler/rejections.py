"""Why a node can't take a pod, in kube-scheduler's words: what each filter answers."""

from collections.abc import Callable
from typing import NamedTuple

from roost_core.scheduler.node_rows import NodeRow


class Rejection(NamedTuple):
    """Why a node can't take a pod. `unresolvable`: not even pre-emption would help there."""

    reasons: tuple[str, ...]
    unresolvable: bool


Check = Callable[[NodeRow], Rejection | None]
