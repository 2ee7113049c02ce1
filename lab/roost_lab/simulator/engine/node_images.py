"""Model what a node's kubelet does with images: queue pulls, keep images on disk, collect and
report them.

Nothing here reads a clock: each call is given its moment, never an earlier one than before. A layer
that several images share is fetched once and lies on the disk once: a base, which other
repositories have too, and the environment, which later commits may keep. Sources: kubelet's
image_manager.go, image_gc_manager.go and nodestatus/setters.go, Kubernetes v1.36. What a layer
costs is in `Assumptions`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from math import floor, inf
from typing import Final, NamedTuple

from roost_core.objects.image_references import image_repository
from roost_lab.simulator.setup.assumptions import PULLS, Assumptions
from roost_lab.traces.chance import Chance

_NOTHING: Final[dict[str, int]] = {}
# Begins the key of a layer that later commits of the repository may keep; no image's name has a
# space.
_ENVIRONMENT: Final = "environment "


class Layer(NamedTuple):
    """One layer of an image."""

    # Equal in all images that share it.
    key: str
    compressed_bytes: int
    disk_bytes: int


class Image:
    """One image, with the sums over its layers."""

    __slots__ = ("compressed_bytes", "disk_bytes", "layers", "name")

    def __init__(self, name: str, layers: tuple[Layer, ...]) -> None:
        self.name = name
        self.layers = layers
        self.compressed_bytes = sum(layer.compressed_bytes for layer in layers)
        self.disk_bytes = sum(layer.disk_bytes for layer in layers)


class Images:
    """The catalogue of images; their layers follow from name and seed, and from commits that were
    launched before.
    """

    def __init__(self, assumptions: Assumptions, chance: Chance) -> None:
        self._assumptions = assumptions
        self._chance = chance
        self._base_bytes = int(assumptions.image_median_bytes * assumptions.shared_share)
        # Grows with the distinct images of a trace, not with its length; their bases are shared.
        self._known: dict[str, Image] = {}
        self._shared: dict[str, Layer] = {}
        # Repository -> the image of its last commit.
        self._commits: dict[str, Image] = {}

    def get(self, name: str, disk_bytes: int | None = None) -> Image:
        """The image of that name. disk_bytes: its size in the trace, which counts at the first call
        only.
        """
        image = self._known.get(name)
        if image is None:
            repository = image_repository(name)
            before = self._commits.get(repository)
            image = self._next_commit(name, disk_bytes, before) or self._make(name, disk_bytes)
            self._known[name] = image
            self._commits[repository] = image
        return image

    def _next_commit(self, name: str, disk_bytes: int | None, before: Image | None) -> Image | None:
        """The image of a push that leaves the environment alone; None for others."""
        world = self._assumptions
        if before is None or not any(layer.key.startswith(_ENVIRONMENT) for layer in before.layers):
            return None
        if self._chance.uniform("environment changed", name) < world.build_changed_share:
            return None
        *kept, files = before.layers
        file_bytes = files.disk_bytes
        if disk_bytes is not None:
            file_bytes = disk_bytes - sum(layer.disk_bytes for layer in kept)
        if file_bytes <= 0:
            return None
        return Image(name, (*kept, self._layer(name, file_bytes)))

    def _make(self, name: str, disk_bytes: int | None) -> Image:
        world = self._assumptions
        chance = self._chance
        if disk_bytes is None:
            disk_bytes = int(
                chance.log_normal("image size", name, world.image_median_bytes, world.image_sigma)
            )
        own_bytes = max(1, disk_bytes)
        shared: list[Layer] = []
        if 0 < self._base_bytes < own_bytes:
            # Others are too small to have a base.
            family = 0
            if world.base_families > 1:
                family = chance.below("base family", name, world.base_families)
            shared.append(self._shared_layer(f"base {family}", self._base_bytes))
            own_bytes -= self._base_bytes
        return Image(name, (*shared, *self._own_layers(name, own_bytes)))

    def _own_layers(self, name: str, disk_bytes: int) -> tuple[Layer, ...]:
        """The environment and the repository's files; together as large as one layer of that
        size.
        """
        layer = self._layer(name, disk_bytes)
        environment = self._layer(
            f"{_ENVIRONMENT}{name}", int(disk_bytes * self._assumptions.environment_share)
        )
        compressed_bytes = layer.compressed_bytes - environment.compressed_bytes
        if (
            environment.disk_bytes <= 0
            or environment.disk_bytes >= disk_bytes
            or compressed_bytes <= 0
        ):
            return (layer,)
        return environment, Layer(name, compressed_bytes, disk_bytes - environment.disk_bytes)

    def _shared_layer(self, key: str, disk_bytes: int) -> Layer:
        layer = self._shared.get(key)
        if layer is None:
            layer = self._layer(key, disk_bytes)
            self._shared[key] = layer
        return layer

    def _layer(self, key: str, disk_bytes: int) -> Layer:
        return Layer(key, max(1, int(disk_bytes / self._assumptions.compression_ratio)), disk_bytes)


@dataclass(slots=True)
class PullFigures:
    """Sums over all nodes."""

    # For users; a pod that waits for a pull under way isn't another pull.
    pulls: int = 0
    bytes: int = 0
    background_pulls: int = 0
    background_bytes: int = 0
    # Images that kubelets removed.
    collected: int = 0
    # The most disk that one node's images ever took. Above the disk's size, a real node would have
    # evicted pods.
    greatest_disk_bytes: int = 0


class Pull(NamedTuple):
    """One pull, known in advance. It has no length if the image is on the node."""

    # When it begins, and when the image is on the node.
    begin: float
    finish: float
    # Compressed, over the network.
    bytes: int
    # The image was neither on the node nor on its way.
    is_cold: bool


class _Arrival(NamedTuple):
    """An image on its way to the node."""

    finish: float
    # In the order of the requests.
    number: int
    image: Image
    # What it adds to the disk.
    added_bytes: int


@dataclass(slots=True)
class _HeldImage:
    image: Image
    first_seen: float
    # When the kubelet last looked while a pod used it, as of the last release; -inf: never.
    last_used: float = -inf


class NodeImages:
    """The images of one node.

    `has`, `use` and `release` cost a look-up, `pull` a few; the list that the node reports is made
    anew only when one of the largest came or went. since: when its kubelet started, from which it
    looks at the disk every gc period. The sizes that the runtime tells kubelet are containerd's,
    compressed: the scheduler sees them, and collection counts by them what it freed.
    """

    def __init__(
        self,
        images: Images,
        assumptions: Assumptions,
        since: float = 0.0,
        figures: PullFigures | None = None,
    ) -> None:
        self.figures = figures if figures is not None else PullFigures()
        self.disk_bytes = 0
        self._catalogue = images
        self._world = assumptions
        self._fetch_rate, self._unpack_rate = PULLS[assumptions.pulls]
        self._since = since
        self._held: dict[str, _HeldImage] = {}
        # Image, on the node or on its way -> running pods.
        self._users: dict[str, int] = {}
        # Since when it has had any.
        self._used_since: dict[str, float] = {}
        # Layer -> images on the node or on their way that have it.
        self._layers: dict[str, int] = {}
        # A heap: what arrives first.
        self._arrivals: list[_Arrival] = []
        # When images arrive, by name.
        self._coming: dict[str, float] = {}
        self._requests = 0
        # When each of the parallel pulls ends; empty: no limit.
        self._pull_slots = [since] * assumptions.parallel_pulls
        # (-size, name) of all images, and the first of them as reported.
        self._by_size: list[tuple[int, str]] = []
        self._status: Mapping[str, int] | None = _NOTHING

    # Images on the node

    def has(self, name: str, now: float | None = None) -> bool:
        """Whether the image is on the node; without `now`, as of the last call that had a time."""
        if now is not None and self._arrivals and self._arrivals[0].finish <= now:
            self.settle(now)
        return name in self._held

    def settle(self, now: float) -> list[str]:
        """Add the images that have arrived by now, and name them.

        All other calls with a time do so, too.
        """
        arrivals = self._arrivals
        names = []
        while arrivals and arrivals[0].finish <= now:
            arrival = heappop(arrivals)
            name = arrival.image.name
            del self._coming[name]
            self._held[name] = _HeldImage(arrival.image, arrival.finish)
            self.disk_bytes += arrival.added_bytes
            place = (-arrival.image.compressed_bytes, name)
            if self._is_reported(place):
                self._status = None
            insort(self._by_size, place)
            names.append(name)
        if names:
            self.figures.greatest_disk_bytes = max(
                self.figures.greatest_disk_bytes, self.disk_bytes
            )
        return names

    def names(self, now: float) -> Iterable[str]:
        """The images on the node."""
        self.settle(now)
        return self._held.keys()

    @property
    def count(self) -> int:
        """How many images are on the node."""
        return len(self._held)

    def status_images(self, now: float | None = None) -> Mapping[str, int]:
        """What the node reports: sizes of the largest images by name; the same object until that
        changes.
        """
        if now is not None:
            self.settle(now)
        if self._status is None:
            limit = self._world.status_images
            listed = self._by_size if limit < 0 else self._by_size[:limit]
            self._status = {name: -size for size, name in listed}
        return self._status

    # Use

    def use(self, name: str, now: float) -> None:
        """A pod uses the image from now on: it isn't collected."""
        self.settle(now)
        users = self._users.get(name, 0)
        self._users[name] = users + 1
        if not users:
            self._used_since[name] = now

    def release(self, name: str, now: float) -> None:
        """A pod stops using the image. Raises KeyError when none used it."""
        self.settle(now)
        self._users[name] -= 1
        if not self._users[name]:
            held = self._held.get(name)
            if held is not None:
                held.last_used = self._last_used(held, now)
            del self._users[name], self._used_since[name]

    # Pulling

    def pull(self, name: str, now: float, *, in_background: bool = False) -> Pull:
        """Request an image that a pod needs; kubelets pull in the order of requests,
        `parallel_pulls` at a time.

        An image that is there takes no time and no turn. One that is on its way takes a turn, and
        is quick then. in_background: no user waits for it.
        """
        self.settle(now)
        if name in self._held:
            return Pull(now, now, 0, False)
        overhead = self._world.pull_overhead_seconds
        begin, at_work = self._next_turn(now)
        coming = self._coming.get(name)
        if coming is not None:
            pull = Pull(begin, max(begin, coming) + overhead, 0, False)
        else:
            image = self._catalogue.get(name)
            missing_bytes = 0
            added_bytes = 0
            layers = self._layers
            for key, compressed_bytes, disk_bytes in image.layers:
                known = layers.get(key, 0)
                layers[key] = known + 1
                if not known:
                    missing_bytes += compressed_bytes
                    added_bytes += disk_bytes
            # Parallel pulls share the network; each unpacks by itself, one layer after the other.
            rate = min(self._fetch_rate / at_work, self._unpack_rate)
            pull = Pull(begin, begin + missing_bytes / rate + overhead, missing_bytes, True)
            self._requests += 1
            self._coming[name] = pull.finish
            heappush(self._arrivals, _Arrival(pull.finish, self._requests, image, added_bytes))
            self._count(missing_bytes, in_background=in_background)
        if self._pull_slots:
            heapreplace(self._pull_slots, pull.finish)
        return pull

    def _next_turn(self, now: float) -> tuple[float, int]:
        """When the next pull begins, and how many run then."""
        if not self._pull_slots:
            return now, 1 + len(self._arrivals)
        begin = max(now, self._pull_slots[0])
        return begin, 1 + sum(free > begin for free in self._pull_slots)

    def _count(self, missing_bytes: int, *, in_background: bool) -> None:
        figures = self.figures
        if in_background:
            figures.background_pulls += 1
            figures.background_bytes += missing_bytes
        else:
            figures.pulls += 1
            figures.bytes += missing_bytes

    # Collection

    def next_collection(self, now: float) -> float | None:
        """When the kubelet will next find the disk too full or an image too old, by the images on
        it and on their way; None: never.

        Ask again after each pull and each collection.
        """
        self.settle(now)
        moment = min(self._over_from(now), self._old_from(now))
        if moment == inf:
            return None
        period = self._world.gc_period_seconds
        tick = self._since + period * (floor((moment - self._since) / period) + 1)
        # A rounding error must not give a time in the past.
        return tick if tick > now else tick + period

    def _over_from(self, now: float) -> float:
        world = self._world
        if not world.node_disk_bytes:
            return inf
        limit = world.gc_high * world.node_disk_bytes
        disk_bytes = self.disk_bytes
        if disk_bytes >= limit:
            return now
        if disk_bytes + sum(arrival.added_bytes for arrival in self._arrivals) < limit:
            return inf
        for arrival in sorted(self._arrivals):
            disk_bytes += arrival.added_bytes
            if disk_bytes >= limit:
                return arrival.finish
        return inf

    def _old_from(self, now: float) -> float:
        """From when on an image may be too old, at the earliest; one in use may be released now."""
        age = self._world.gc_max_age_seconds
        if not age or not (self._held or self._arrivals):
            return inf
        last_used = [self._last_used(held, now) for held in self._held.values()]
        last_used += [now for _ in self._arrivals]
        return max(now, self._since + age, min(last_used) + age)

    def _last_used(self, held: _HeldImage, now: float) -> float:
        """When the image was last used, as the kubelet knows it.

        A kubelet never sees pods that come and go between two of its looks.
        """
        used_since = self._used_since.get(held.image.name)
        if used_since is None:
            return held.last_used
        period = self._world.gc_period_seconds
        look = self._since + period * floor((now - self._since) / period)
        # The pod's container is there from when the image is.
        return look if look >= max(used_since, held.first_seen) else held.last_used

    def collect(self, now: float) -> list[str]:
        """Remove images as the kubelet does at its look at the disk, and name them."""
        self.settle(now)
        names = [*self._collect_old(now), *self._collect_full(now)]
        self.figures.collected += len(names)
        return names

    def _collect_old(self, now: float) -> list[str]:
        """Remove images that nobody used for the greatest age, once the kubelet has run as long."""
        age = self._world.gc_max_age_seconds
        if not age or now - self._since <= age:
            return []
        old = [
            held
            for name, held in self._held.items()
            if name not in self._users and now - held.last_used > age
        ]
        for held in old:
            self._remove(held.image)
        return [held.image.name for held in old]

    def _collect_full(self, now: float) -> list[str]:
        """Remove images if the disk is too full.

        Images that no pod uses go: first those that the kubelet never saw used, then by last use,
        then by when they came. None of the last two minutes goes. It ends when the sizes that the
        runtime tells add up to what brings the disk down to the low mark.
        """
        world = self._world
        size = world.node_disk_bytes
        if not size or self.disk_bytes < world.gc_high * size:
            return []
        to_free = self.disk_bytes - world.gc_low * size
        unused = [held for name, held in self._held.items() if name not in self._users]
        unused.sort(key=lambda held: (held.last_used, held.first_seen, held.image.name))
        freed = 0
        names = []
        for held in unused:
            if freed >= to_free:
                break
            if now - held.first_seen < world.gc_min_age_seconds:
                continue
            self._remove(held.image)
            freed += held.image.compressed_bytes
            names.append(held.image.name)
        return names

    def _remove(self, image: Image) -> None:
        del self._held[image.name]
        for key, _, disk_bytes in image.layers:
            self._layers[key] -= 1
            if not self._layers[key]:
                del self._layers[key]
                self.disk_bytes -= disk_bytes
        place = (-image.compressed_bytes, image.name)
        index = bisect_left(self._by_size, place)
        del self._by_size[index]
        if self._world.status_images < 0 or index < self._world.status_images:
            self._status = None

    def _is_reported(self, place: tuple[int, str]) -> bool:
        limit = self._world.status_images
        if limit < 0 or len(self._by_size) < limit:
            return True
        return limit > 0 and place < self._by_size[limit - 1]
