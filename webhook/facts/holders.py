"""Intersect what is known of images' nodes, without copying (who knows it: `warm.py`).

Thousands of nodes may hold an image that all users run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple


class ImageHolders(NamedTuple):
    """The nodes of one image: known by pods and reports, and those whose label says so."""

    known: Set[str]
    labelled: Set[str]

    @property
    def most(self) -> int:
        """No more nodes than this hold it."""
        return len(self.known) + len(self.labelled)

    def among(self, names: Iterable[str]) -> Iterable[str]:
        """The nodes of `names` that hold the image, found as they are asked for."""
        if not self.labelled:
            return filter(self.known.__contains__, names)
        if not self.known:
            return filter(self.labelled.__contains__, names)
        known = self.known
        labelled = self.labelled
        return (name for name in names if name in known or name in labelled)


class Holders:
    """The nodes that hold all of some images; none for no images."""

    def __init__(self, images: Iterable[ImageHolders]) -> None:
        # The image with the fewest nodes first: it rules out most.
        self._images: Sequence[ImageHolders] = sorted(images, key=lambda image: image.most)

    @property
    def most(self) -> int:
        """There are no more than this."""
        return self._images[0].most if self._images else 0

    def __contains__(self, name: str) -> bool:
        """Whether a node is one of them."""
        return bool(self._images) and all(
            name in known or name in labelled for known, labelled in self._images
        )

    def among(self, names: Iterable[str]) -> Iterable[str]:
        """The holders among `names`, in their order, found as they are asked for."""
        if not self._images:
            return ()
        for image in self._images:
            names = image.among(names)
        return names

    def all(self) -> Set[str]:
        """All of them. Takes as long as there are nodes with the image that fewest have."""
        if not self._images:
            return frozenset()
        rarest = self._images[0]
        return frozenset(self.among(rarest.known | rarest.labelled))
