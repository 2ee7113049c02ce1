"""Choose where the images of booked events go: to the nodes that keep room for their people.

Those are the nodes of the set's placeholders; of a CapacityBuffer, those with the room that it keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost.controllers.contract.bookings import bookings_at
from roost.controllers.popular_images.settings import ASSUMED_IMAGE_BYTES
from roost.controllers.popular_images.wanted import Wanted
from roost_core.placement.labels import OWN_INSTANCE_LABEL, PLACEHOLDER_SET_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roost.controllers.contract.bookings import BookingSettings
    from roost.controllers.popular_images.scene import Scene


def booked_images(
    scene: Scene, settings: BookingSettings, now: float
) -> tuple[Mapping[str, Sequence[Wanted]], float | None]:
    """Return the images by name of the node, and after how many seconds bookings change; None: never."""
    snapshot = scene.snapshot
    bookings, change = bookings_at(settings, snapshot.bookings, now)
    wait = None if change is None else max(1.0, change - now)
    # By name of the set; an image that several events have is wanted for all of them.
    by_set: dict[str, dict[str, int]] = {}
    for booking in bookings:
        event = booking.event
        if event.image:
            images = by_set.setdefault(event.set_name, {})
            images[event.image] = images.get(event.image, 0) + event.people
    if not by_set:
        return {}, wait
    sets_on: dict[str, set[str]] = {}
    for pod in snapshot.pods.values():
        name = pod.labels.get(PLACEHOLDER_SET_LABEL)
        if name in by_set and pod.node_name in scene.views and pod.labels.get(OWN_INSTANCE_LABEL) == snapshot.release:
            sets_on.setdefault(pod.node_name, set()).add(name)
    for name, nodes in scene.buffered_nodes.items():
        for node in nodes:
            if name in by_set and node in scene.views:
                sets_on.setdefault(node, set()).add(name)
    wanted: dict[str, Sequence[Wanted]] = {}
    for node, names in sets_on.items():
        people: dict[str, int] = {}
        for name in names:
            people |= by_set[name]
        wanted[node] = [
            Wanted(float(number), image, scene.sizes.get(image) or ASSUMED_IMAGE_BYTES, "")
            for image, number in sorted(people.items(), key=lambda each: (-each[1], each[0]))
        ]
    return wanted, wait
