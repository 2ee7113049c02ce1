"""Say which images a node should have: those of the highest expected use per byte,

    launches on this node within a half-life x seconds that each then saves / bytes to pull

launches = ln 2 x users / nodes. (Users that arrive at a rate r and count until they have decayed by half-lives h sum up
to r h / ln 2; where they land is the scheduler's business, so a node gets one share of those that its pods' rules
leave.) Seconds saved = a round trip + bytes / the rate of unpacking. Frequency x cost / size is what Greedy-Dual-Size-
Frequency keeps a cache by (Cherkasova, "Improving WWW proxies performance with GDSF caching policy", HP Labs 1998), and
filling a bounded room by value per size is Dantzig's rule for the knapsack (1957).
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from roost.controllers.popular_images.settings import (
    ASSUMED_IMAGE_BYTES,
    PULL_BYTES_PER_SECOND,
    PULL_ROUND_TRIPS_SECONDS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.controllers.popular_images.popularity import Use
    from roost.controllers.popular_images.scene import Scene
    from roost.controllers.popular_images.settings import PopularSettings


class Wanted(NamedTuple):
    """An image for the nodes of one group, the best first."""

    use_per_byte: float
    image: str
    image_bytes: int
    # The other name under which a node may hold it; "" when it isn't known.
    digest: str


def use_per_byte(launches: float, image_bytes: int) -> float:
    """Seconds that users are spared for each byte pulled; see the module's docstring."""
    size = max(1, image_bytes)
    return launches * (PULL_ROUND_TRIPS_SECONDS + size / PULL_BYTES_PER_SECOND) / size


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
            by_image.setdefault(use.image, []).append((bit, math.log(2) * amount / shared_by[bit]))
    # Image, bytes, the other name, parts, the bits of these, and what a node is worth to it that admits them all.
    images: list[tuple[str, int, str, list[tuple[int, float]], int, float]] = []
    for image, parts in by_image.items():
        digest = digests.get(image, "")
        size = scene.sizes.get(digest) or scene.sizes.get(image) or ASSUMED_IMAGE_BYTES
        all_bits, launches = 1 << parts[0][0], parts[0][1]
        if len(parts) > 1:
            all_bits, launches = sum({1 << bit for bit, _ in parts}), math.fsum(amount for _, amount in parts)
        images.append((image, size, digest, parts, all_bits, use_per_byte(launches, size)))
    lists: dict[tuple[int, int], tuple[Wanted, ...]] = {}
    for admits, pullers in groups:
        managed = frozenset().union(*(one.images for bit, one in enumerate(settings.managed) if pullers >> bit & 1))
        found = []
        for image, size, digest, parts, all_bits, worth in images:
            if image in managed or not admits & all_bits:
                continue
            if admits & all_bits != all_bits:
                here = math.fsum(amount for bit, amount in parts if admits >> bit & 1)
                found.append((-use_per_byte(here, size), image, size, digest))
            else:
                found.append((-worth, image, size, digest))
        # An image is there once, so what comes after its name is never compared.
        best = heapq.nsmallest(settings.per_node, found)
        lists[admits, pullers] = tuple(Wanted(-worth, image, size, digest) for worth, image, size, digest in best)
    return lists
