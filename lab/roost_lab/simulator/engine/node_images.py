"""Model what a node's kubelet does with images: pull, keep, report and collect them.

Nothing here reads a clock: each call is given its moment, which is never earlier than the last.

A layer that several images share is fetched once, and is on the disk once. Two kinds of layers are
shared: a base, which other repositories have too, and the environment, which later commits of a
repository may keep. What a layer costs is in `Assumptions`.

Sources: kubelet's image_manager.go, image_gc_manager.go and nodestatus/setters.go, Kubernetes
v1.36.
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
# Begins the key of an environment's layer. No other key begins so: images' names have no spaces.
_ENVIRONMENT: Final = "environment "


class Layer(NamedTuple):
    """One layer of an image."""

    # The same in all images that share the layer.
    key: str
    compressed_bytes: int
    disk_bytes: int


class Image:
    """One image. Its sizes are the sums over its layers."""

    __slots__ = ("compressed_bytes", "disk_bytes", "layers", "name")

    def __init__(self, name: str, layers: tuple[Layer, ...]) -> None:
        self.name = name
        self.layers = layers
        self.compressed_bytes = sum(layer.compressed_bytes for layer in layers)
        self.disk_bytes = sum(layer.disk_bytes for layer in layers)


class Images:
    """The catalogue of images.

    The layers of an image follow from its name, the seed, and the commits launched before.
    """

    def __init__(self, assumptions: Assumptions, chance: Chance) -> None:
        self._assumptions = assumptions
        self._chance = chance
        self._base_bytes = int(assumptions.image_median_bytes * assumptions.shared_share)
        # Name -> image. Grows with the distinct images of a trace, not with its length.
        self._known: dict[str, Image] = {}
        # Key -> base.
        self._bases: dict[str, Layer] = {}
        # Repository -> the image of its last commit.
        self._commits: dict[str, Image] = {}

    def get(self, name: str, disk_bytes: int | None = None) -> Image:
        """The image of that name.

        disk_bytes: its size in the trace; None: not known. Only that of the first call counts.
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
        """The image of a commit that keeps the environment of the commit before.

        None where there is no environment to keep, or where the commit changes it.
        """
        if before is None or not any(layer.key.startswith(_ENVIRONMENT) for layer in before.layers):
            return None
        changed_share = self._assumptions.build_changed_share
        if self._chance.uniform("environment changed", name) < changed_share:
            return None
        # The repository's files are the last layer.
        *kept, files = before.layers
        file_bytes = files.disk_bytes
        if disk_bytes is not None:
            file_bytes = disk_bytes - sum(layer.disk_bytes for layer in kept)
        if file_bytes <= 0:
            return None
        return Image(name, (*kept, self._layer(name, file_bytes)))

    def _make(self, name: str, disk_bytes: int | None) -> Image:
        """An image with a base, an environment and files. disk_bytes: None: it is drawn."""
        assumed = self._assumptions
        if disk_bytes is None:
            drawn_bytes = self._chance.log_normal(
                "image size", name, assumed.image_median_bytes, assumed.image_sigma
            )
            disk_bytes = int(drawn_bytes)
        own_bytes = max(1, disk_bytes)
        if not 0 < self._base_bytes < own_bytes:
            # It is too small to have a base.
            return Image(name, self._own_layers(name, own_bytes))
        family = 0
        if assumed.base_families > 1:
            family = self._chance.below("base family", name, assumed.base_families)
        base = self._base(f"base {family}")
        return Image(name, (base, *self._own_layers(name, own_bytes - self._base_bytes)))

    def _own_layers(self, name: str, disk_bytes: int) -> tuple[Layer, ...]:
        """The layers of the environment and of the repository's files.

        Together they are as large as a single layer of `disk_bytes`. Where either would be empty,
        there is only that single layer.
        """
        single = self._layer(name, disk_bytes)
        environment_bytes = int(disk_bytes * self._assumptions.environment_share)
        environment = self._layer(f"{_ENVIRONMENT}{name}", environment_bytes)
        file_bytes = disk_bytes - environment_bytes
        file_compressed_bytes = single.compressed_bytes - environment.compressed_bytes
        if environment_bytes <= 0 or file_bytes <= 0 or file_compressed_bytes <= 0:
            return (single,)
        return environment, Layer(name, file_compressed_bytes, file_bytes)

    def _base(self, key: str) -> Layer:
        base = self._bases.get(key)
        if base is None:
            base = self._layer(key, self._base_bytes)
            self._bases[key] = base
        return base

    def _layer(self, key: str, disk_bytes: int) -> Layer:
        compressed_bytes = int(disk_bytes / self._assumptions.compression_ratio)
        return Layer(key, max(1, compressed_bytes), disk_bytes)


@dataclass(slots=True)
class PullFigures:
    """Sums over all nodes. Bytes are compressed, over the network."""

    # Pulls for which users wait. Users who wait for a pull under way don't count again.
    pulls: int = 0
    bytes: int = 0
    # Pulls for which no user waits.
    background_pulls: int = 0
    background_bytes: int = 0
    # Images that kubelets removed.
    collected: int = 0
    # The most disk that one node's images ever took. Above the disk's size, a real node would have
    # evicted pods.
    greatest_disk_bytes: int = 0


class Pull(NamedTuple):
    """One pull, whose end is known in advance. If the image is on the node, it takes no time."""

    begin: float
    # When the image is on the node.
    finish: float
    # What it downloads, compressed.
    bytes: int
    # Whether the image was neither on the node nor on its way.
    is_cold: bool


class _Arrival(NamedTuple):
    """An image on its way to the node. Sorted by when it arrives."""

    finish: float
    # The number of its request, which sorts equal times.
    number: int
    image: Image
    # What it adds to the disk.
    added_bytes: int


@dataclass(slots=True)
class _HeldImage:
    """An image on the node."""

    image: Image
    # When it came.
    first_seen: float
    # When the kubelet last looked while a pod used it; -inf: never. While pods use it, this isn't
    # kept up to date: `NodeImages._last_used` is.
    last_used: float = -inf


class NodeImages:
    """The images of one node.

    `has`, `use` and `release` cost a look-up, `pull` a few. The list that the node reports is made
    anew only when one of the largest images came or went.

    containerd tells kubelet the compressed sizes of images. The scheduler sees those, and
    collection counts by them how much it freed.
    """

    def __init__(
        self,
        images: Images,
        assumptions: Assumptions,
        since: float = 0.0,
        figures: PullFigures | None = None,
    ) -> None:
        """Begin without images.

        since: when the kubelet started; it looks at the disk every gc period from then on. figures:
        sums to add to, which other nodes share; None: this node's own.
        """
        self.figures = figures if figures is not None else PullFigures()
        self.disk_bytes = 0
        self._catalogue = images
        self._assumptions = assumptions
        self._fetch_rate, self._unpack_rate = PULLS[assumptions.pulls]
        self._since = since
        # Name -> image on the node.
        self._held: dict[str, _HeldImage] = {}
        # Name of an image, on the node or on its way -> how many pods use it; without zeros.
        self._pods_using: dict[str, int] = {}
        # Name of such an image -> since when it has been in use.
        self._used_since: dict[str, float] = {}
        # Layer's key -> how many images on the node or on their way have it; without zeros.
        self._layers: dict[str, int] = {}
        # A heap of the images on their way: the first to arrive is first.
        self._arrivals: list[_Arrival] = []
        # Name of an image on its way -> when it arrives.
        self._coming: dict[str, float] = {}
        self._requests = 0
        # A heap: when each of the parallel pulls ends. Empty: there is no limit.
        self._pull_slots = [since] * assumptions.parallel_pulls
        # (-compressed size, name) of all images on the node, sorted: the largest first.
        self._by_size: list[tuple[int, str]] = []
        # The largest of them, as the node reports them; None: to be made anew.
        self._status: Mapping[str, int] | None = _NOTHING

    # Images on the node

    def has(self, name: str, now: float | None = None) -> bool:
        """Whether the image is on the node, now or (None) at the last call that had a time."""
        if now is not None and self._arrivals and self._arrivals[0].finish <= now:
            self.settle(now)
        return name in self._held

    def settle(self, now: float) -> list[str]:
        """Add the images that have arrived by now, and name them.

        All other methods do so, too, if they get a time.
        """
        arrivals = self._arrivals
        names = []
        while arrivals and arrivals[0].finish <= now:
            arrival = heappop(arrivals)
            name = arrival.image.name
            del self._coming[name]
            self._held[name] = _HeldImage(arrival.image, arrival.finish)
            self.disk_bytes += arrival.added_bytes
            size_and_name = (-arrival.image.compressed_bytes, name)
            if self._is_reported(size_and_name):
                self._status = None
            insort(self._by_size, size_and_name)
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
        """What the node reports: name -> compressed size of the largest images.

        It is the same object until that changes. now: as of `has`.
        """
        if now is not None:
            self.settle(now)
        if self._status is None:
            limit = self._assumptions.status_images
            listed = self._by_size if limit < 0 else self._by_size[:limit]
            self._status = {name: -size for size, name in listed}
        return self._status

    # Use

    def use(self, name: str, now: float) -> None:
        """A pod uses the image from now on: it isn't collected."""
        self.settle(now)
        pods = self._pods_using.get(name, 0)
        self._pods_using[name] = pods + 1
        if not pods:
            self._used_since[name] = now

    def release(self, name: str, now: float) -> None:
        """A pod stops using the image. Raises KeyError when none used it."""
        self.settle(now)
        self._pods_using[name] -= 1
        if not self._pods_using[name]:
            held = self._held.get(name)
            if held is not None:
                held.last_used = self._last_used(held, now)
            del self._pods_using[name]
            del self._used_since[name]

    # Pulling

    def pull(self, name: str, now: float, *, in_background: bool = False) -> Pull:
        """Request an image that a pod needs.

        Kubelets pull in the order of requests, `parallel_pulls` at a time. An image on the node
        takes no time and no turn. An image on its way takes a turn, which is quick once the image
        is there. in_background: no user waits for it.
        """
        self.settle(now)
        if name in self._held:
            return Pull(begin=now, finish=now, bytes=0, is_cold=False)
        begin, running_pulls = self._next_turn(now)
        arrives = self._coming.get(name)
        if arrives is not None:
            finish = max(begin, arrives) + self._assumptions.pull_overhead_seconds
            pull = Pull(begin, finish, bytes=0, is_cold=False)
        else:
            pull = self._download(name, begin, running_pulls)
            self._count(pull.bytes, in_background=in_background)
        if self._pull_slots:
            heapreplace(self._pull_slots, pull.finish)
        return pull

    def _download(self, name: str, begin: float, running_pulls: int) -> Pull:
        """Begin a pull of the layers that are neither on the node nor on their way."""
        image = self._catalogue.get(name)
        missing_bytes = 0
        added_bytes = 0
        layers = self._layers
        for key, compressed_bytes, disk_bytes in image.layers:
            images_with_layer = layers.get(key, 0)
            layers[key] = images_with_layer + 1
            if not images_with_layer:
                missing_bytes += compressed_bytes
                added_bytes += disk_bytes
        # Parallel pulls share the network. Each unpacks by itself, one layer after the other.
        bytes_per_second = min(self._fetch_rate / running_pulls, self._unpack_rate)
        overhead = self._assumptions.pull_overhead_seconds
        finish = begin + missing_bytes / bytes_per_second + overhead
        self._requests += 1
        self._coming[name] = finish
        heappush(self._arrivals, _Arrival(finish, self._requests, image, added_bytes))
        return Pull(begin, finish, missing_bytes, is_cold=True)

    def _next_turn(self, now: float) -> tuple[float, int]:
        """When the next pull begins, and how many pulls run then, itself included."""
        if not self._pull_slots:
            return now, 1 + len(self._arrivals)
        begin = max(now, self._pull_slots[0])
        others = sum(end > begin for end in self._pull_slots)
        return begin, 1 + others

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
        """When the kubelet will next find the disk too full or an image too old; None: never.

        That follows from the images on the node and on their way. So it must be asked again after
        each pull and each collection.
        """
        self.settle(now)
        moment = min(self._too_full_from(now), self._too_old_from(now))
        if moment == inf:
            return None
        period = self._assumptions.gc_period_seconds
        next_look = self._since + period * (floor((moment - self._since) / period) + 1)
        # A rounding error must not give a time in the past.
        return next_look if next_look > now else next_look + period

    def _too_full_from(self, now: float) -> float:
        """From when on the disk is too full; inf: never."""
        assumed = self._assumptions
        if not assumed.node_disk_bytes:
            return inf
        limit = assumed.gc_high * assumed.node_disk_bytes
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

    def _too_old_from(self, now: float) -> float:
        """From when on an image may be too old, at the earliest; inf: never.

        An image in use counts as if its pods stopped using it now.
        """
        max_age = self._assumptions.gc_max_age_seconds
        has_images = bool(self._held or self._arrivals)
        if not max_age or not has_images:
            return inf
        last_used = [self._last_used(held, now) for held in self._held.values()]
        last_used += [now for _ in self._arrivals]
        return max(now, self._since + max_age, min(last_used) + max_age)

    def _last_used(self, held: _HeldImage, now: float) -> float:
        """When the image was last used, as the kubelet knows it.

        A kubelet looks every gc period. It never sees pods that come and go between two looks.
        """
        used_since = self._used_since.get(held.image.name)
        if used_since is None:
            return held.last_used
        period = self._assumptions.gc_period_seconds
        last_look = self._since + period * floor((now - self._since) / period)
        # A pod that waited for the image has its container from the image's arrival on.
        runs_since = max(used_since, held.first_seen)
        return last_look if last_look >= runs_since else held.last_used

    def collect(self, now: float) -> list[str]:
        """Remove images as the kubelet does at its look at the disk, and name them."""
        self.settle(now)
        names = [*self._collect_old(now), *self._collect_full(now)]
        self.figures.collected += len(names)
        return names

    def _collect_old(self, now: float) -> list[str]:
        """Remove images that no pod used for the greatest age, once the kubelet has run as long."""
        max_age = self._assumptions.gc_max_age_seconds
        if not max_age or now - self._since <= max_age:
            return []
        old = [held for held in self._unused() if now - held.last_used > max_age]
        for held in old:
            self._remove(held.image)
        return [held.image.name for held in old]

    def _collect_full(self, now: float) -> list[str]:
        """Remove images if the disk is too full.

        Images that no pod uses go: first those that the kubelet never saw used, then by last use,
        then by when they came. Images that came less than `gc_min_age_seconds` ago stay. It ends
        when the removed images' compressed sizes add up to what brings the disk down to the low
        mark.
        """
        assumed = self._assumptions
        size = assumed.node_disk_bytes
        if not size or self.disk_bytes < assumed.gc_high * size:
            return []
        to_free = self.disk_bytes - assumed.gc_low * size
        unused = self._unused()
        unused.sort(key=lambda held: (held.last_used, held.first_seen, held.image.name))
        freed = 0
        names = []
        for held in unused:
            if freed >= to_free:
                break
            if now - held.first_seen < assumed.gc_min_age_seconds:
                continue
            self._remove(held.image)
            freed += held.image.compressed_bytes
            names.append(held.image.name)
        return names

    def _unused(self) -> list[_HeldImage]:
        """The images on the node that no pod uses."""
        return [held for name, held in self._held.items() if name not in self._pods_using]

    def _remove(self, image: Image) -> None:
        del self._held[image.name]
        for key, _, disk_bytes in image.layers:
            self._layers[key] -= 1
            if not self._layers[key]:
                del self._layers[key]
                self.disk_bytes -= disk_bytes
        index = bisect_left(self._by_size, (-image.compressed_bytes, image.name))
        del self._by_size[index]
        limit = self._assumptions.status_images
        if limit < 0 or index < limit:
            self._status = None

    def _is_reported(self, size_and_name: tuple[int, str]) -> bool:
        """Whether a new image is large enough to be reported."""
        limit = self._assumptions.status_images
        if limit < 0 or len(self._by_size) < limit:
            return True
        return limit > 0 and size_and_name < self._by_size[limit - 1]
