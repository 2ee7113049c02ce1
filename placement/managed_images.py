"""Tell which images the puller brings to which nodes; the image gate holds pods back for these images only.

Keys and meanings are zero-to-jupyterhub's: `singleuser` image, profileList, nodeSelector; `prePuller.extraImages`.
What is missing, null or of another shape is passed over: a profile list may hold whatever KubeSpawner takes.
The chart's `_helpers.tpl` repeats `puller_groups` for Helm. Helm goes through a map by its sorted keys; so does this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from placement.images import normalise_reference
from placement.labels import puller_component


class PullerGroup(NamedTuple):
    """The images that one DaemonSet brings to the nodes with these labels.

    component: what names it; "puller" for the nodes that every user of the hub may use.
    images: references as written, in order of use, each image once.
    """

    component: str
    node_selector: dict[str, str]
    images: tuple[str, ...]


class _Use(NamedTuple):
    """An image ("": none that can be known), and the labels of the nodes that its users go to."""

    image: str
    node_selector: dict[str, str]


def _mapping(parent: object, key: str) -> Mapping[object, object]:
    found = parent.get(key) if isinstance(parent, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _items(parent: object, key: str) -> list[object]:
    """Entries of the list under `key`, or of the mapping by its keys (newer charts key their profiles by name)."""
    found = parent.get(key) if isinstance(parent, Mapping) else None
    if isinstance(found, Mapping):
        return [found[name] for name in sorted(found, key=str)]
    return list(found) if isinstance(found, list | tuple) else []


def _named_image(image: object) -> str:
    """`{name, tag}` as one reference; a tag read by YAML as a number stays what was written as far as it can."""
    if not isinstance(image, Mapping):
        return ""
    name, tag = image.get("name"), image.get("tag")
    if not isinstance(name, str) or not name:
        return ""
    return name if tag is None or tag == "" else f"{name}:{tag}"


def _merged(selector: Mapping[str, str], over: object) -> dict[str, str]:
    """KubeSpawner's merge of dictionaries: null deletes. What is no text can't be a label, and is passed over."""
    merged = dict(selector)
    for key, value in over.items() if isinstance(over, Mapping) else ():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, str):
            merged[key] = value
    return merged


def _overridden(use: _Use, holder: object) -> _Use:
    """What `kubespawner_override` of a profile or a choice makes of a use."""
    override = _mapping(holder, "kubespawner_override")
    image = override.get("image")
    if image is None or image == "":
        image = use.image
    # `{value}` stands in a template for what the user types: nobody can pull that beforehand.
    elif not isinstance(image, str) or "{" in image:
        image = ""
    return _Use(image, _merged(use.node_selector, override.get("node_selector")))


def _chosen(uses: list[_Use], option: object) -> list[_Use]:
    """What an option makes of `uses`: KubeSpawner always applies one of its choices, or what the user types."""
    choices = _items(option, "choices")
    if not choices:
        return uses
    unlisted = _mapping(option, "unlisted_choice")
    made: list[_Use] = []
    for choice in [*choices, unlisted] if unlisted.get("enabled") is True else choices:
        for use in uses:
            after = _overridden(use, choice)
            if after not in made:
                made.append(after)
    return made


def _uses(singleuser: object, pre_puller: object) -> list[_Use]:
    """Every image with the nodes it is for, in order of use; some may come twice."""
    everywhere = _merged({}, _mapping(singleuser, "nodeSelector"))
    default = _Use(_named_image(_mapping(singleuser, "image")), everywhere)
    uses = [default]
    if not (isinstance(pre_puller, Mapping) and pre_puller.get("pullProfileListImages") is False):
        for profile in _items(singleuser, "profileList"):
            found = [_overridden(default, profile)]
            for option in _items(profile, "profile_options"):
                found = _chosen(found, option)
            uses += found
    extra_images = _items(pre_puller, "extraImages")
    return uses + [_Use(_named_image(image), everywhere) for image in extra_images]


def puller_groups(singleuser: object, pre_puller: object) -> list[PullerGroup]:
    """Which DaemonSets bring which images to which nodes; the nodes that every user may use come first."""
    uses = _uses(singleuser, pre_puller)
    everywhere = uses[0].node_selector
    # By selector: its first spelling, and the images by their normalised form.
    groups: dict[str, tuple[dict[str, str], dict[str, str]]] = {}
    for image, selector in uses:
        if image:
            component = "puller" if selector == everywhere else puller_component(selector)
            _, images = groups.setdefault(component, (selector, {}))
            images.setdefault(normalise_reference(image), image)
    narrower = _mapping(pre_puller, "nodeSelector")
    found = [
        PullerGroup(component, _merged(selector, narrower), tuple(images.values()))
        for component, (selector, images) in groups.items()
    ]
    return sorted(found, key=lambda group: group.component != "puller")


def managed_images(singleuser: object, pre_puller: object) -> frozenset[str]:
    """Normalised references of all images that the puller of this hub brings to its nodes."""
    return frozenset(normalise_reference(use.image) for use in _uses(singleuser, pre_puller) if use.image)
