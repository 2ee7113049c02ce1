"""Which image to copy where, so that no copy replaces another."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from roost.images.listing import Name, name_of

# A host has a dot, a port, or is localhost: any other first part of an image's name is somebody at Docker Hub.
_HOST: Final = r"(?:localhost|[A-Za-z0-9][A-Za-z0-9-]*(?=[.:])[A-Za-z0-9.-]*)(?::\d+)?"
_REGISTRY: Final = re.compile(_HOST + r"(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")


def is_registry(text: str) -> bool:
    """Whether images can be copied below this: a host, perhaps with a port and a path."""
    return _REGISTRY.fullmatch(text) is not None


def copies(images: Iterable[str], registry: str) -> list[tuple[str, str]]:
    """Source and target of each copy, by target. What the registry's host already has is left out.

    A target keeps the source's host, path and tag below `registry`: REGISTRY/HOST/PATH:TAG. Without a tag, or where two
    digests have the same one, its tag is the digest's.
    """
    own = registry.partition("/")[0]
    names = {name for image in images if (name := name_of(image)).host != own}
    sources: dict[str, set[str]] = {}
    for name in names:
        sources.setdefault(_target(name, registry), set()).add(str(name))
    pairs = set()
    for name in names:
        target = _target(name, registry)
        if len(sources[target]) > 1 and name.digest:
            target = _target(name._replace(tag=""), registry)
        pairs.add((str(name), target))
    return sorted(pairs, key=lambda pair: pair[1])


def _target(name: Name, registry: str) -> str:
    # A path can't hold a colon, and no host holds an underscore.
    host = name.host.replace(":", "_").lower()
    tag = name.tag or name.digest.replace(":", "-") or "latest"
    return f"{registry}/{host}/{name.path}:{tag}"
