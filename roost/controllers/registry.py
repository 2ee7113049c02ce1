"""All controllers, in the order in which their actions are carried out."""

from __future__ import annotations

from typing import Any, Final

from roost.controllers.contract.planner import Controller
from roost.controllers.headroom.plan import CONTROLLER as HEADROOM
from roost.controllers.image_gate.plan import CONTROLLER as IMAGE_GATE
from roost.controllers.placeholder_mover.plan import CONTROLLER as PLACEHOLDER_MOVER
from roost.controllers.popular_images.plan import CONTROLLER as POPULAR_IMAGES
from roost.controllers.start_notices.plan import CONTROLLER as START_NOTICES

CONTROLLERS: Final[tuple[Controller[Any, Any], ...]] = (
    IMAGE_GATE,
    PLACEHOLDER_MOVER,
    HEADROOM,
    POPULAR_IMAGES,
    START_NOTICES,
)
