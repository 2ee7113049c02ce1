"""List the controllers, in the order in which their actions are carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.headroom import make_headroom
from controllers.image_gate import make_image_gate
from controllers.placeholder_mover import make_placeholder_mover
from controllers.popular_images import make_popular_images

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controllers.planner import Planner, Sources
    from placement.documents import Reader

# Each reads its part of the settings (faults go to the reader) and returns None when it is switched off there.
FACTORIES: Final[Sequence[Callable[[Reader, Sources], Planner | None]]] = (
    make_image_gate,
    make_placeholder_mover,
    make_headroom,
    make_popular_images,
)
