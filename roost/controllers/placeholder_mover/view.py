"""Bundle what every part of the mover's plan looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roost.controllers.contract.placeholder_sets import PlaceholderSet
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost.controllers.placeholder_mover.nodes import NodeJudge
    from roost.controllers.placeholder_mover.placeholders import SeatMap
    from roost.controllers.placeholder_mover.settings import MoverSettings
    from roost_core.scheduler.objects import NodeState


@dataclass(frozen=True, slots=True)
class View:
    """One moment of the cluster, and what was made of it."""

    snapshot: Snapshot
    settings: MoverSettings
    judge: NodeJudge
    placeholders: SeatMap
    now: Moment

    def is_full(self, one: PlaceholderSet, node: NodeState) -> bool:
        """Whether the node has no room for one more placeholder of the set."""
        spec = self.placeholders.by_set[one.name].spec
        return spec is not None and not self.placeholders.has_room(node, spec)
