"""Find which images the puller brings to which nodes; the image gate applies to these images only.

`profile_seats` finds what users of a profile need, for bookings that name one. Keys and meanings
are zero-to-jupyterhub's: `singleuser` image, initContainers, extraContainers, networkTools and
profileList; where users may go: nodeSelector, extraTolerations, extraNodeAffinity.required;
`prePuller.extraImages`. What is missing, null or malformed is ignored: a profile list may contain
whatever KubeSpawner accepts. The chart's twins of these functions are in
chart/templates/_images.tpl.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from generator.faults import KeyPath
from generator.render.go_json import to_json
from generator.values.lookups import child, mapping
from roost_core.objects.image_references import normalise_reference
from roost_core.placement.labels import puller_component

_Object = Mapping[str, object]
# KubeSpawner's traits of what users get besides CPU and memory, such as GPUs.
RESOURCE_TRAITS: Final = ("extra_resource_limits", "extra_resource_guarantees")
# JSON that says nothing, and JSON that takes a resource away.
_NOTHING: Final = ("null", '""')
_NONE_OF_IT: Final = ("null", "0", '"0"')
# The component of the nodes that every user of the hub may use.
_FOR_ALL: Final = "puller"
# Traits of what users' pods run besides the image.
CONTAINER_TRAITS: Final = ("init_containers", "extra_containers")
# All that users may choose, written out as JSON, with what it takes to find it. The largest hubs
# have a part of it.
MOST_BYTES: Final = 8 * 2**20
_LEAST_BYTES: Final = 256  # Each takes the time of so many, however little it says.


class PullerGroup(NamedTuple):
    """The images that one DaemonSet brings to the nodes that some users of the hub may use.

    component: what names it; "puller" for the nodes that every user of the hub may use.
    images: references as written, in order of use, each image once.
    tolerations, required_terms: as in a pod; the terms are ORed, none admits every node.
    """

    component: str
    node_selector: dict[str, str]
    images: tuple[str, ...]
    tolerations: tuple[_Object, ...] = ()
    required_terms: tuple[_Object, ...] = ()


class _Use(NamedTuple):
    """An image ("": none that can be known), what its users' pods run beside it, and where they may
    go.
    """

    image: str
    node_selector: dict[str, str]
    tolerations: tuple[_Object, ...]
    required_terms: tuple[_Object, ...]
    # Names of the extended resources that they ask for.
    extended: tuple[str, ...]
    # Images of init and extra containers.
    containers: tuple[str, ...]


def _items(parent: object, key: str) -> list[object]:
    """Entries of the list under `key`, or of the mapping by its keys (newer charts key their
    profiles by name).
    """
    value = child(parent, key)
    if isinstance(value, Mapping):
        return [value[name] for name in sorted(value, key=str)]
    return list(value) if isinstance(value, list | tuple) else []


def named_image(image: object) -> str:
    """`{name, tag}` as one reference; a tag that YAML reads as a number is written back as closely
    as possible.
    """
    if not isinstance(image, Mapping):
        return ""
    name = image.get("name")
    tag = image.get("tag")
    if not isinstance(name, str) or not name:
        return ""
    return name if to_json(tag) in _NOTHING else f"{name}:{tag}"


def _merged(selector: Mapping[str, str], over: object) -> dict[str, str]:
    """KubeSpawner's merge of dictionaries: null deletes.

    A value that is not text cannot be a label, and is skipped.
    """
    merged = dict(selector)
    if isinstance(over, Mapping):
        for key, value in sorted(over.items()):
            if value is None:
                merged.pop(key, None)
            elif isinstance(value, str):
                merged[key] = value
    return merged


def _objects(value: object) -> tuple[_Object, ...] | None:
    """The entries of a list that are mappings; None when it is no list, and nothing is said."""
    if not isinstance(value, list | tuple):
        return None
    return tuple(entry for entry in value if isinstance(entry, Mapping))


def _asked(names: tuple[str, ...], amounts: _Object) -> tuple[str, ...]:
    """`names` of extended resources with those that `amounts` asks for; null and 0 take a name
    away.
    """
    asked = set(names)
    for name, amount in amounts.items():
        if isinstance(name, str) and "/" in name:
            if to_json(amount) in _NONE_OF_IT:
                asked.discard(name)
            else:
                asked.add(name)
    return tuple(sorted(asked))


def with_images(images: tuple[str, ...], containers: Sequence[object]) -> tuple[str, ...]:
    """`images`, then those of the containers, each once. A container is a mapping, or its image.

    What can't be known is left out: what is no text, and a text with fields such as `{username}`.
    """
    named = [
        container.get("image") if isinstance(container, Mapping) else container
        for container in [*images, *containers]
    ]
    known = [image for image in named if isinstance(image, str) and image and "{" not in image]
    return tuple(dict.fromkeys(known))


def _overridden(use: _Use, holder: object) -> _Use:
    """What `kubespawner_override` of a profile or a choice makes of a use."""
    override = mapping(child(holder, "kubespawner_override"))
    image = override.get("image")
    if to_json(image) in _NOTHING:
        image = use.image
    # `{value}` stands in a template for what the user types: nobody can pull that beforehand.
    elif not isinstance(image, str) or "{" in image:
        image = ""
    # KubeSpawner merges dictionaries and replaces lists.
    tolerations = _objects(override.get("tolerations"))
    terms = _objects(override.get("node_affinity_required"))
    extended = use.extended
    containers = use.containers
    for key in RESOURCE_TRAITS:
        extended = _asked(extended, mapping(child(override, key)))
    for key in CONTAINER_TRAITS:
        containers = with_images(containers, _items(override, key))
    return _Use(
        image=image,
        node_selector=_merged(use.node_selector, override.get("node_selector")),
        tolerations=use.tolerations if tolerations is None else tolerations,
        required_terms=use.required_terms if terms is None else terms,
        extended=extended,
        containers=containers,
    )


def _chosen(uses: list[_Use], option: object) -> list[_Use]:
    """What an option makes of `uses`: KubeSpawner always applies one of its choices, or what the
    user types.
    """
    choices = _items(option, "choices")
    if not choices:
        return uses
    unlisted = mapping(child(option, "unlisted_choice"))
    if unlisted.get("enabled") is True:
        choices = [*choices, unlisted]
    made = [_overridden(use, choice) for choice in choices for use in uses]
    # Each once, by what it prints as: to Python, True is 1.
    return list({to_json(list(use)): use for use in made}.values())


def _default_use(singleuser: object) -> _Use:
    """What a user has who chooses nothing."""
    extended: tuple[str, ...] = ()
    for key in ("limits", "guarantees"):
        extended = _asked(extended, mapping(child(singleuser, "extraResource", key)))
    network_tools = named_image(mapping(child(singleuser, "networkTools", "image")))
    own = _items(singleuser, "initContainers")
    extra = _items(singleuser, "extraContainers")
    containers = with_images((), [*own, {"image": network_tools}, *extra])
    required = child(singleuser, "extraNodeAffinity", "required")
    return _Use(
        image=named_image(mapping(child(singleuser, "image"))),
        node_selector=_merged({}, mapping(child(singleuser, "nodeSelector"))),
        tolerations=_objects(child(singleuser, "extraTolerations")) or (),
        required_terms=_objects(required) or (),
        extended=extended,
        containers=containers,
    )


def _bytes_of(uses: list[_Use]) -> int:
    """How long uses are as JSON, as Helm would print them: with the names of the fields."""
    return len(to_json([use._asdict() for use in uses]).encode())


def _bytes_to_choose(uses: list[_Use], option: object) -> int:
    """What it costs to apply an option's choices to uses, in bytes.

    The option is read for each use, and each use is written for each choice. Each pair of them
    costs _LEAST_BYTES besides.
    """
    choices = len(_items(option, "choices"))
    read_bytes = len(to_json(option).encode()) * len(uses)
    written_bytes = _bytes_of(uses) * choices
    return read_bytes + written_bytes + _LEAST_BYTES * len(uses) * choices


def _uses(singleuser: object, pre_puller: object) -> list[_Use]:
    """Every image with the nodes it is for, in order of use; some may come twice.

    None at all if they are too many.
    """
    default = _default_use(singleuser)
    uses = [default]
    extra = _items(pre_puller, "extraImages")
    # Each use costs its own bytes, and those of the tolerations that every puller has. What a
    # choice costs is counted before it is made.
    always_bytes = len(to_json(_items(pre_puller, "tolerations")).encode())
    bytes_left = MOST_BYTES - (always_bytes + _bytes_of([default])) * len(extra)
    if child(pre_puller, "pullProfileListImages") is not False:
        for profile in _items(singleuser, "profileList"):
            if bytes_left > 0:
                choices = [_overridden(default, profile)]
                for option in _items(profile, "profile_options"):
                    bytes_left -= _bytes_to_choose(choices, option)
                    if bytes_left > 0:
                        choices = _chosen(choices, option)
                bytes_left -= always_bytes * len(choices) + _bytes_of(choices)
                uses += choices
    if bytes_left <= 0:
        return []
    return uses + [default._replace(image=named_image(image)) for image in extra]


def are_too_many(singleuser: object, pre_puller: object) -> bool:
    """Whether users may choose so much that it isn't written out, and no puller is made."""
    return not _uses(singleuser, pre_puller)


def _tolerations(use: _Use, always: Sequence[_Object]) -> tuple[_Object, ...]:
    """What the puller of a use tolerates."""
    # Where the API server's ExtendedResourceToleration is on, a pod that asks for one tolerates
    # taints of that key.
    named = [{"key": name, "operator": "Exists"} for name in use.extended]
    tolerations = [*always, *use.tolerations, *named]
    return tuple({to_json(toleration): toleration for toleration in tolerations}.values())


def _each_once(references: Iterable[str]) -> tuple[str, ...]:
    """The references of different images, by their normalised form."""
    by_normalised: dict[str, str] = {}
    for reference in references:
        by_normalised.setdefault(normalise_reference(reference), reference)
    return tuple(by_normalised.values())


def puller_groups(singleuser: object, pre_puller: object) -> list[PullerGroup]:
    """Which DaemonSets bring which images to which nodes; the nodes that every user may use come
    first.
    """
    uses = _uses(singleuser, pre_puller)
    if not uses:
        return []
    always = _objects(child(pre_puller, "tolerations")) or ()
    # The first use is of users without a profile: its nodes are those that every user may use.
    usual = to_json([_tolerations(uses[0], always), uses[0].required_terms])
    usual_selector = to_json(uses[0].node_selector)
    groups: dict[str, PullerGroup] = {}
    # By the group's component; the keys are references, in the order of their containers' start.
    images: dict[str, dict[str, None]] = {}
    for use in uses:
        references = (*use.containers, use.image) if use.image else use.containers
        if not references:
            continue
        tolerations = _tolerations(use, always)
        rules = to_json([tolerations, use.required_terms])
        is_for_all = rules == usual and to_json(use.node_selector) == usual_selector
        other_rules = "" if rules == usual else rules
        component = _FOR_ALL if is_for_all else puller_component(use.node_selector, other_rules)
        group = PullerGroup(component, use.node_selector, (), tolerations, use.required_terms)
        groups.setdefault(component, group)
        images.setdefault(component, {}).update(dict.fromkeys(references))
    narrower = mapping(child(pre_puller, "nodeSelector"))
    return [
        group._replace(
            node_selector=_merged(group.node_selector, narrower),
            images=_each_once(images[group.component]),
        )
        for group in sorted(groups.values(), key=lambda group: group.component != _FOR_ALL)
    ]


def profile_seats(
    singleuser: object, defaults: object, sets: Sequence[_Object]
) -> list[dict[str, object]]:
    """Each profile, as its default choices make it: its two names, its image and which set is for
    its nodes.

    defaults: `placeholder.defaults`. sets: `placeholders`, each whole. image: "" where none can be
    known. set: the name of the first; None where there is none.
    """
    usual = _default_use(singleuser)._replace(
        node_selector=_merged({}, mapping(child(defaults, "nodeSelector"))),
        tolerations=_objects(child(defaults, "tolerations")) or (),
        required_terms=_objects(child(defaults, "requiredNodeTerms")) or (),
    )
    set_of: dict[str, object] = {}
    for placeholder_set in sets:
        rules = to_json(
            [
                placeholder_set["nodeSelector"],
                placeholder_set["tolerations"],
                placeholder_set["requiredNodeTerms"],
            ]
        )
        if rules not in set_of:
            set_of[rules] = placeholder_set["name"]
    seats: list[dict[str, object]] = []
    for profile in _items(singleuser, "profileList"):
        use = _overridden(usual, profile)
        for option in _items(profile, "profile_options"):
            choices = _items(option, "choices")
            marked = [choice for choice in choices if child(choice, "default") is True]
            # Without a mark the first choice is the default.
            default = (marked or choices)[:1]
            for choice in default:
                use = _overridden(use, choice)
        rules = to_json([use.node_selector, use.tolerations, use.required_terms])
        names = [child(profile, "display_name"), child(profile, "slug")]
        seats.append({"names": names, "image": use.image, "set": set_of.get(rules)})
    return seats


def managed_images(singleuser: object, pre_puller: object) -> frozenset[str]:
    """Return the normalised references of all images that this hub's puller brings to its nodes."""
    return frozenset(
        normalise_reference(image)
        for group in puller_groups(singleuser, pre_puller)
        for image in group.images
    )


def key_naming(values: object, images: Sequence[str], part: str) -> KeyPath:
    """The key of the values that names one of these images: the usual image, if it is among them,
    else the first.

    part: "name" or "tag", of an image that has both.
    """
    usual: KeyPath = ("singleuser", "image", part)
    keys = [_key_of(values, image, part) for image in images]
    return usual if usual in keys else keys[0]


def _key_of(values: object, image: str, part: str) -> KeyPath:
    """The key of the values that names an image which pullers bring.

    If several do: the usual image's, then networkTools', then a container's, then extraImages'.
    Else it is in the profiles.
    """
    for path in (("singleuser", "image"), ("singleuser", "networkTools", "image")):
        if named_image(child(values, *path)) == image:
            return (*path, part)
    for containers in ("initContainers", "extraContainers"):
        for at, container in _entries(child(values, "singleuser", containers)):
            if child(container, "image") == image:
                return ("singleuser", containers, at, "image")
    for name, extra in _entries(child(values, "prePuller", "extraImages")):
        if named_image(extra) == image:
            return ("prePuller", "extraImages", name, part)
    return ("singleuser", "profileList")


def _entries(value: object) -> list[tuple[str | int, object]]:
    """Entries of a list with their places, or of a mapping with their keys."""
    if isinstance(value, Mapping):
        return [(str(key), item) for key, item in value.items()]
    return list(enumerate(value)) if isinstance(value, list) else []
