"""Say which images a node should have: those that most users can be expected to launch there.

A node's share of an image's users is users / nodes that the pods' rules leave them: where among these a user lands is
the scheduler's business.
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
    """An image for the nodes of one group, the best first."""

    # Users, decayed, shared out among the nodes that their pods may run on.
    users: float
    image: str
    image_bytes: int
    # The other name under which a node may hold it; "" when it isn't known.
    digest: str


def large_uses(users: Mapping[Use, float], min_users: float) -> Mapping[Use, float]:
    """All uses of those images that may have enough users: most have far too few, and are looked at once."""
    # No image has more uses than this, as each image has one at least.
    most_uses = len(users) - len(set(map(itemgetter(0), users))) + 1
    # One of them has its share of the image's users; half of that, to be on the safe side of all rounding.
    least = min_users / most_uses / 2
    if most_uses == 1:
        return {use: amount for use, amount in users.items() if amount >= least}
    images = {use.image for use, amount in users.items() if amount >= least}
    return {use: amount for use, amount in users.items() if use.image in images}


def find_popular(users: Mapping[Use, float], min_users: float) -> dict[str, float]:
    """Users by image, where they are enough. The order of `users` means nothing, not even to the last digit."""
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
    """The images that nodes should have, by what nodes have in common: `admits` and `pullers` of their NodeView.

    popular: users by image, as `find_popular` gives them. digests: the other name of an image, where it is known.
    """
    groups = Counter((view.admits, view.pullers) for view in scene.views.values())
    # How many nodes the pods of each set of rules may use.
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
    # Image, bytes, the other name, parts, the bits of these, and the share of a node that admits them all.
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
        found = []
        for image, size, digest, parts, all_bits, share in images:
            if image in managed or not admits & all_bits:
                continue
            if admits & all_bits != all_bits:
                here = math.fsum(amount for bit, amount in parts if admits >> bit & 1)
                found.append((-here, image, size, digest))
            else:
                found.append((-share, image, size, digest))
        # An image is there once, so what comes after its name is never compared.
        best = heapq.nsmallest(settings.per_node, found)
        lists[admits, pullers] = tuple(Wanted(-share, image, size, digest) for share, image, size, digest in best)
    return lists
