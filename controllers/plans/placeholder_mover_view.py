"""Bundle what every part of the mover's plan looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controllers.plans.placeholder_mover_nodes import NodeJudge
    from controllers.plans.placeholder_mover_seats import SeatMap
    from controllers.plans.placeholder_mover_settings import MoverSettings, PlaceholderSet
    from controllers.plans.snapshot import Moment, Snapshot
    from placement.scheduling.objects import NodeState


@dataclass(frozen=True, slots=True)
class View:
    """One moment of the cluster, and what was made of it."""

    snapshot: Snapshot
    settings: MoverSettings
    judge: NodeJudge
    seats: SeatMap
    now: Moment

    def is_full(self, one: PlaceholderSet, node: NodeState) -> bool:
        """Whether the node has no room for one more placeholder of the set."""
        spec = self.seats.by_set[one.name].spec
        return spec is not None and not self.seats.has_room(node, spec)
