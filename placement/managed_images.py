"""Tell which images the puller brings to nodes, from a hub's values; the image gate holds pods back for these only.

Keys and meanings are zero-to-jupyterhub's: `singleuser.image`, `singleuser.profileList`, `prePuller.extraImages`. What
is missing, null or of another shape is passed over: a profile list may hold whatever KubeSpawner takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placement.images import normalise_reference


def _mapping(parent: object, key: str) -> Mapping[object, object]:
    found = parent.get(key) if isinstance(parent, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _items(found: object) -> list[object]:
    """Entries of a list, or of a mapping (newer charts key their profiles by name)."""
    if isinstance(found, Mapping):
        return list(found.values())
    return list(found) if isinstance(found, list | tuple) else []


def _named_image(image: object) -> Iterator[str]:
    """`{name, tag}` as one reference; a tag read by YAML as a number stays what was written as far as it can."""
    if not isinstance(image, Mapping):
        return
    name, tag = image.get("name"), image.get("tag")
    if not isinstance(name, str) or not name:
        return
    yield name if tag is None or tag == "" else f"{name}:{tag}"


def _override_image(holder: object) -> Iterator[str]:
    image = _mapping(holder, "kubespawner_override").get("image")
    # `{value}` stands in a template for what the user types: nobody can pull that beforehand.
    if isinstance(image, str) and image and "{" not in image:
        yield image


def _profile_images(profile_list: object) -> Iterator[str]:
    for profile in _items(profile_list):
        yield from _override_image(profile)
        for option in _items(_mapping(profile, "profile_options")):
            for choice in _items(_mapping(option, "choices")):
                yield from _override_image(choice)


def managed_images(singleuser: object, pre_puller: object) -> frozenset[str]:
    """Normalised references of all images that the puller of this hub brings to its nodes."""
    found: set[str] = set()
    found.update(_named_image(_mapping(singleuser, "image")))
    if isinstance(singleuser, Mapping) and not (
        isinstance(pre_puller, Mapping) and pre_puller.get("pullProfileListImages") is False
    ):
        found.update(_profile_images(singleuser.get("profileList")))
    for image in _items(_mapping(pre_puller, "extraImages")):
        found.update(_named_image(image))
    return frozenset(normalise_reference(reference) for reference in found)
