"""Name what the plan of popular images remembers from plan to plan; nothing of it is needed for safety."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roost.controllers.popular_images.popularity import Popularity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.controllers.contract.actions import Gauges
    from roost.controllers.popular_images.nodes import NodeView
    from roost.controllers.popular_images.pods import Pull
    from roost.controllers.popular_images.popularity import Rules


class Rest(NamedTuple):
    """An image or a node that is left alone until then."""

    tries: int
    until: float


class Asked(NamedTuple):
    """A pull that was begun, and when it was first known of."""

    pull: Pull
    node_uid: str
    since: float


class Brought(NamedTuple):
    """An image that is on a node by our doing."""

    since: float
    image: str
    image_bytes: int


@dataclass(frozen=True, slots=True)
class PopularMemory:
    """What is remembered from plan to plan. All moments are of the steady clock."""

    popularity: Popularity = field(default_factory=Popularity)
    # The rules that the views were made for.
    rules: tuple[Rules, ...] = ()
    # By name of the node.
    views: Mapping[str, NodeView] = field(default_factory=dict)
    # Bytes by name of an image, as nodes told.
    sizes: Mapping[str, int] = field(default_factory=dict)
    # Bytes that might have been pulled by `as_of` and were not; may be below 0 after a large image.
    budget: float = 0.0
    as_of: float | None = None
    # By name of the pod.
    asked: Mapping[str, Asked] = field(default_factory=dict)
    # By uid of the pod: when its deletion was asked for.
    dismissed: Mapping[str, float] = field(default_factory=dict)
    # By uid of the node, by what was pulled: a tag that moved since names another image now.
    brought: Mapping[str, Mapping[str, Brought]] = field(default_factory=dict)
    # By image, and by uid of the node.
    backing_off: Mapping[str, Rest] = field(default_factory=dict)
    resting: Mapping[str, Rest] = field(default_factory=dict)
    # By uid of the node: the image that failed there last, while none has come since.
    failed_on: Mapping[str, str] = field(default_factory=dict)
    # By name of the node: since when it was seen without a pod of any class.
    empty_since: Mapping[str, float] = field(default_factory=dict)
    # As the last plan reported them.
    gauges: Gauges = field(default_factory=dict)
