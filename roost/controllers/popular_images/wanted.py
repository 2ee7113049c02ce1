"""Choose which images a node should have: those that most users can be expected to launch there.

A node's share of an image's users is their number divided by the number of nodes that their pods' rules admit: on which
of these a user is placed is up to the scheduler.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from roost.controllers.popular_images.settings import ASSUMED_IMAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.controllers.popular_images.popularity import Use
    from roost.controllers.popular_images.scene import Scene
    from roost.controllers.popular_images.settings import PopularSettings


class Wanted(NamedTuple):
    """An image that the nodes of one group should have."""

    # Users, decayed, divided by the number of nodes that their pods may run on.
    users: float
    image: str
    image_bytes: int
    # Its reference by digest, under which a node may hold it, too; "" if unknown.
    digest: str


def large_uses(users: Mapping[Use, float], min_users: float) -> Mapping[Use, float]:
    """Filter out the uses of images that can't have enough users: most have far too few."""
    # The most uses that one image can have, because each image has at least one.
    most_uses = len(users) - len(set(map(itemgetter(0), users))) + 1
    # At least one of them has this share of the image's users; halved, to be safe against rounding.
    least = min_users / most_uses / 2
    if most_uses == 1:
        return {use: amount for use, amount in users.items() if amount >= least}
    images = {use.image for use, amount in users.items() if amount >= least}
    return {use: amount for use, amount in users.items() if use.image in images}


def find_popular(users: Mapping[Use, float], min_users: float) -> dict[str, float]:
    """Return the images with enough users, and how many. The order of `users` doesn't change a digit of the sums."""
    totals: dict[str, float] = {}
    several: dict[str, list[float]] = {}
    for use, amount in users.items():
        image = use.image
        if image in totals:
            several.setdefault(image, [totals[image]]).append(amount)
        else:
            totals[image] = amount
    totals |= {image: math.fsum(parts) for image, parts in several.items()}
    return {image: total for image, total in totals.items() if total >= min_users}


def wanted_lists(
    users: Mapping[Use, float],
    popular: Mapping[str, float],
    scene: Scene,
    settings: PopularSettings,
    digests: Mapping[str, str],
) -> dict[tuple[int, int], tuple[Wanted, ...]]:
    """Return the images that nodes should have, the best first, by the node's `NodeView.admits` and `NodeView.pullers`.

    popular: users by image, from `find_popular`. digests: an image's reference by digest, where it is known.
    """
    groups = Counter((view.admits, view.pullers) for view in scene.views.values())
    # By bit of a set of rules: how many nodes its pods may use.
    shared_by: Counter[int] = Counter()
    for view_admits, count in Counter(view.admits for view in scene.views.values() if not view.closed).items():
        for bit in range(len(scene.rules)):
            if view_admits >> bit & 1:
                shared_by[bit] += count
    bits = {rules: bit for bit, rules in enumerate(scene.rules)}
    by_image: dict[str, list[tuple[int, float]]] = {}
    for use, amount in users.items():
        if use.image not in popular:
            continue
        bit = bits.get(use.rules, -1)
        if bit >= 0 and shared_by[bit]:
            by_image.setdefault(use.image, []).append((bit, amount / shared_by[bit]))
    # Image, bytes, digest, parts, their bits, and the share of a node that admits them all.
    images: list[tuple[str, int, str, list[tuple[int, float]], int, float]] = []
    for image, parts in by_image.items():
        digest = digests.get(image, "")
        size = scene.sizes.get(digest) or scene.sizes.get(image) or ASSUMED_IMAGE_BYTES
        all_bits, share = 1 << parts[0][0], parts[0][1]
        if len(parts) > 1:
            all_bits, share = sum({1 << bit for bit, _ in parts}), math.fsum(amount for _, amount in parts)
        images.append((image, size, digest, parts, all_bits, share))
    lists: dict[tuple[int, int], tuple[Wanted, ...]] = {}
    for admits, pullers in groups:
        managed = frozenset().union(
            *(puller.references for bit, puller in enumerate(settings.managed.pullers) if pullers >> bit & 1)
        )
        candidates = []
        for image, size, digest, parts, all_bits, share in images:
            if image in managed or not admits & all_bits:
                continue
            if admits & all_bits != all_bits:
                here = math.fsum(amount for bit, amount in parts if admits >> bit & 1)
                candidates.append((-here, image, size, digest))
            else:
                candidates.append((-share, image, size, digest))
        # Each image occurs once, so what follows its name is never compared.
        best = heapq.nsmallest(settings.per_node, candidates)
        lists[admits, pullers] = tuple(Wanted(-share, image, size, digest) for share, image, size, digest in best)
    return lists
