"""All controllers, in the order in which their actions are carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.controllers.headroom.plan import make_headroom
from roost.controllers.image_gate.plan import make_image_gate
from roost.controllers.placeholder_mover.plan import make_placeholder_mover
from roost.controllers.popular_images.plan import make_popular_images
from roost.controllers.start_notices.plan import make_start_notices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roost.controllers.contract.planner import Planner, Sources
    from roost_core.placement.settings_reader import Reader

# Each reads its part of controllers.json (faults go to the reader) and returns None if it has nothing to do.
FACTORIES: Final[Sequence[Callable[[Reader, Sources], Planner | None]]] = (
    make_image_gate,
    make_placeholder_mover,
    make_headroom,
    make_popular_images,
    make_start_notices,
)
