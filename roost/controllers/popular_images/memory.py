"""What the plan of popular images remembers from plan to plan; none of it is needed for safety."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roost.controllers.popular_images.popularity import Popularity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.controllers.contract.actions import Gauges
    from roost.controllers.popular_images.node_views import NodeView
    from roost.controllers.popular_images.pull_pods import Pull
    from roost_core.objects.selectors import NodeRules


class Rest(NamedTuple):
    """Nothing is tried with an image or a node before `until` (steady seconds)."""

    # In a row.
    failures: int
    until: float


class StartedPull(NamedTuple):
    """A pull whose pod was requested or seen, first at `since` (steady seconds)."""

    pull: Pull
    node_uid: str
    since: float


class PulledImage(NamedTuple):
    """An image that was pulled to a node for this plan, at `since` (steady seconds)."""

    since: float
    image: str
    image_bytes: int


@dataclass(frozen=True, slots=True)
class PopularMemory:
    """What is remembered from plan to plan; times are steady seconds."""

    popularity: Popularity = field(default_factory=Popularity)
    # The rules that the views were made for.
    rules: tuple[NodeRules, ...] = ()
    # By name of the node.
    views: Mapping[str, NodeView] = field(default_factory=dict)
    # Bytes by name of an image, as nodes report them.
    sizes: Mapping[str, int] = field(default_factory=dict)
    # Bytes left to pull at `as_of`; may be negative after a large image.
    budget: float = 0.0
    as_of: float | None = None
    # By name of the pod.
    started: Mapping[str, StartedPull] = field(default_factory=dict)
    # By uid of the pod: when its deletion was requested.
    deleted: Mapping[str, float] = field(default_factory=dict)
    # By uid of the node, by the pulled reference: a tag may name another image by now.
    pulled: Mapping[str, Mapping[str, PulledImage]] = field(default_factory=dict)
    # By image, and by uid of the node.
    backing_off: Mapping[str, Rest] = field(default_factory=dict)
    resting: Mapping[str, Rest] = field(default_factory=dict)
    # By uid of the node: the image that failed there last, if none was pulled since.
    failed_on: Mapping[str, str] = field(default_factory=dict)
    # By name of the node: since when it has had no pod of any class.
    empty_since: Mapping[str, float] = field(default_factory=dict)
    # As the last plan reported them.
    gauges: Gauges = field(default_factory=dict)
