"""Map the images that a hub's users run, the nodes they run on, and the pullers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from generator.checks.moving_tags import FIX, STALE, moving
from generator.checks.tolerations_and_terms import lint_required_term, lint_toleration
from generator.faults import some
from generator.importing.chart_resources import kubernetes_resources
from generator.importing.lost_overrides import note_lost
from generator.importing.object_names import object_name
from generator.importing.profile_pools import UNKNOWN_IMAGE
from generator.importing.pull_secrets import put_pull_secrets
from generator.importing.quantities import cpu_quantity, spawner_memory
from generator.importing.result import Draft
from generator.importing.source import UNKNOWN, Charts, HubPath, HubSection
from generator.importing.traits import (
    LISTS,
    OLD_NAMES,
    UNSET,
    SetTraits,
    entries,
    entries_of,
    is_unfilled,
    known_of,
    overridden,
)
from generator.importing.users import containers_of, hub_size, node_selector
from generator.render.managed_images import CONTAINER_TRAITS, RESOURCE_TRAITS
from generator.values.lookups import child, listing, mapping, secret_names, text
from generator.values.profile_overrides import by_key, overrides
from roost_core.objects.image_references import is_reference


def map_images(draft: Draft, charts: Charts, traits: SetTraits) -> None:
    """Map the users' images and pods, the nodes that they are for, and the pullers. traits: the
    spawner's.
    """
    hub = charts.hub
    _map_image(draft, hub, traits, is_binder=charts.binder is not None)
    profiles = _map_profiles(draft, hub, traits)
    draft.put("singleuser.nodeSelector", *node_selector(hub, traits))
    _map_containers(draft, hub, traits)
    _map_secrets(draft, hub, profiles)
    _map_pullers(draft, charts)


def _map_image(draft: Draft, hub: HubSection, traits: SetTraits, *, is_binder: bool) -> None:
    """The image that users get who choose none."""
    at: HubPath = ("singleuser", "image")
    # Both are read in any case: what isn't text there is noted, even if another image is used.
    name = hub.text("singleuser.image.name")
    tag = _read_tag(hub)
    of_spawner = _image_of_spawner(traits)
    if of_spawner is not None:
        # The spawner's own setting takes the place of the chart's.
        reference, keys = of_spawner
        if reference:
            _put_image(draft, hub, traits, {"name": reference}, keys)
        return
    has_tag_key = "tag" in mapping(child(hub.data, *at))
    is_misfit = hub.is_misfit("singleuser.image.name") or hub.is_misfit("singleuser.image.tag")
    if name and not has_tag_key:
        draft.notes.append(
            f"{hub.show((*at, 'tag'))} is not in this file, and pods run the chart's own tag:"
            " no image is brought for it. Name the tag, or import what Helm made of all: helm get"
            " values RELEASE --all."
        )
    elif name and not is_misfit:
        image = {"name": name, "tag": tag} if tag else {"name": name}
        _put_image(draft, hub, traits, image, at)
    elif name is None and not is_binder:
        draft.notes.append(
            f"{hub.show('singleuser.image.name')} is not in this file: the image gate holds users"
            " back for images that singleuser.image, singleuser.profileList and"
            " prePuller.extraImages name, for no others."
        )


def _image_of_spawner(traits: SetTraits) -> tuple[str, HubPath] | None:
    """The image's reference that the spawner's own setting names, and its key; None: it names none,
    or none that is known here.
    """
    for trait in ("image", "image_spec"):
        reference, keys = traits.get(trait, UNSET)
        if isinstance(reference, str) and "{" not in reference and reference != UNKNOWN_IMAGE:
            return reference, keys
    return None


def _put_image(
    draft: Draft, hub: HubSection, traits: SetTraits, image: Mapping[str, str], keys: HubPath
) -> None:
    """Set the image, by name and tag or by its whole reference, in one piece: half of it would name
    another image.
    """
    draft.put("singleuser.image", dict(image), (*hub.path, *keys))
    of_chart = hub.text("singleuser.image.pullPolicy")
    of_spawner, _ = traits.get("image_pull_policy", UNSET)
    always = of_chart == "Always" or of_spawner == "Always"
    reference = ":".join(image.values())
    if is_reference(reference) and (always or moving([reference])):
        why = "pullPolicy: Always" if always else "a tag that moves"
        draft.notes.append(f"{hub.show(keys)}: {why}; {STALE}. {FIX}")


def _map_profiles(draft: Draft, hub: HubSection, traits: SetTraits) -> list[object]:
    """What profiles say of images and their nodes. Returns the profiles as the hub has them."""
    profiles, keys = _listed_profiles(draft, hub, traits)
    # Where only a function knows which profiles there are, none is the usual one.
    of_spawner, _ = traits.get("profile_list", UNSET)
    known_profiles = [] if of_spawner == UNKNOWN else profiles
    # The first profile counts as default if none is marked.
    marked = [profile for profile in known_profiles if child(profile, "default")]
    usual = next(iter([*marked, *known_profiles]), None)
    is_first_usual = bool(known_profiles) and usual is profiles[0]
    known_lists = {trait: known_of(traits, trait) for trait in LISTS}
    base = {trait: known.value for trait, known in known_lists.items() if known is not None}
    kept = {}
    for place, profile in enumerate(profiles):
        images = profile_images(profile, base, is_usual=profile is usual)
        if images:
            kept[place] = images
    if kept and is_first_usual and 0 not in kept:
        # Without this entry, the next profile would be taken for the default one.
        kept = {0: {"display_name": text(child(usual, "display_name"))}, **kept}
    at = (*hub.path, *keys)
    why = "Of the profiles, what says which images go to which nodes."
    draft.put("singleuser.profileList", list(kept.values()), at, why, positions=tuple(kept))
    note_lost(draft, at, profiles)
    _note_moving_tags(draft, hub, keys, profiles)
    return profiles


def _listed_profiles(
    draft: Draft, hub: HubSection, traits: SetTraits
) -> tuple[list[object], HubPath]:
    """The hub's profiles, and the key that lists them; none where there is no list of them."""
    profiles = hub.get("singleuser.profileList", "any")
    keys: HubPath = ("singleuser", "profileList")
    of_spawner, set_at = traits.get("profile_list", UNSET)
    if isinstance(of_spawner, list | Mapping):
        # The spawner's own setting takes the place of the chart's here, too.
        profiles = of_spawner
        keys = set_at
    if profiles and isinstance(profiles, Mapping):
        profiles = [profile for profile in by_key(profiles) if profile is not None]
        draft.notes.append(f"{hub.show(keys)}: its profiles were read in the order of their keys.")
    if profiles is None:
        return [], keys
    if not isinstance(profiles, list):
        draft.reject(hub, ("singleuser", "profileList"), "expected a list of profiles")
        return [], keys
    return profiles, keys


def _note_moving_tags(
    draft: Draft, hub: HubSection, keys: HubPath, profiles: Sequence[object]
) -> None:
    named_images = [
        (text(override.get("image")), override.get("image_pull_policy"))
        for profile in profiles
        for override in overrides(profile)
    ]
    moved = [
        image
        for image, policy in named_images
        if is_reference(image) and (policy == "Always" or moving([image]))
    ]
    if moved:
        draft.notes.append(
            f"{hub.show(keys)}: {some(moved, 1)}: a tag that moves, or is always pulled;"
            f" {STALE}. {FIX}"
        )


def _map_containers(draft: Draft, hub: HubSection, traits: SetTraits) -> None:
    """What runs beside the image in every user's pod; the chart's pullers bring it too."""
    for key, trait in zip(("initContainers", "extraContainers"), CONTAINER_TRAITS, strict=True):
        listed, at = containers_of(hub, traits, trait)
        kept = [_named_image(container) for container in listed if text(child(container, "image"))]
        draft.put(f"singleuser.{key}", kept, at, "Their images are pulled to nodes, too.")
    if _blocks_cloud_metadata(hub):
        _map_network_tools(draft, hub)


def _blocks_cloud_metadata(hub: HubSection) -> bool:
    """Whether each user's pod has the init container that closes the cloud's metadata server."""
    # An older chart's key says the opposite: that users may reach it.
    is_open = hub.get("singleuser.cloudMetadata.enabled", "boolean")
    if is_open is not None:
        return not is_open
    return hub.switch("singleuser.cloudMetadata.blockWithIptables", default=True)


def _map_network_tools(draft: Draft, hub: HubSection) -> None:
    at = ("singleuser", "networkTools", "image")
    image = {part: hub.text(f"singleuser.networkTools.image.{part}") for part in ("name", "tag")}
    if all(image.values()):
        draft.put_each(
            "singleuser.networkTools.image",
            image,
            (*hub.path, *at),
            "Its init container, block-cloud-metadata.",
        )
    else:
        draft.notes.append(
            f"{hub.show(at)} is not in this file, and each user's pod runs the chart's own: until"
            " that small image is on a new node, a start there waits for it. Import what Helm made"
            " of all files (helm get values --all), or set singleuser.networkTools.image."
        )


def _named_image(container: object) -> dict[str, str]:
    """The container's name and image, as far as it has them."""
    named = {part: text(child(container, part)) for part in ("name", "image")}
    return {part: value for part, value in named.items() if value}


def _map_secrets(draft: Draft, hub: HubSection, profiles: Sequence[object]) -> None:
    """The Secrets with which the hub's pods pull: those of all its pods, and those of its users."""
    common = secret_names(hub.items("imagePullSecrets"))
    is_made = hub.switch("imagePullSecret.create", default=False)
    if is_made and hub.switch("imagePullSecret.automaticReferenceInjection", default=True):
        common.append(object_name(hub, draft.release, "image-pull-secret"))
    put_pull_secrets(draft, common, (*hub.path, "imagePullSecrets"))
    users = secret_names(hub.items("singleuser.image.pullSecrets"))
    for profile in profiles:
        for override in overrides(profile):
            users += secret_names(override.get("image_pull_secrets"))
    at = (*hub.path, "singleuser", "image", "pullSecrets")
    draft.put(
        "singleuser.image.pullSecrets",
        list(dict.fromkeys(users)),
        at,
        "Users', for the puller's pods.",
    )


def _read_tag(hub: HubSection) -> str | None:
    """The tag of the users' image; None: there is none, or what stands there is noted as a misfit.

    A tag is text to the chart; an unquoted number (2024) is what an older chart took.
    """
    tag = hub.get("singleuser.image.tag", "any")
    if isinstance(tag, int) and not isinstance(tag, bool):
        return str(tag)
    if isinstance(tag, str):
        return tag or None
    if tag is not None:
        hub.misfits["singleuser", "image", "tag"] = (tag, "string")
    return None


def profile_images(
    profile: object, base: Mapping[str, object], *, is_usual: bool
) -> dict[str, object]:
    """What Roost reads of a profile: its names, images and node selectors, also of its choices. {}
    when it has none.

    base: lists that the hub gives by name, which an override by name adds to. is_usual: of the
    default profile also the size, which placeholders have.
    """
    entry = _override(profile, base, is_usual=is_usual)
    override = mapping(child(profile, "kubespawner_override"))
    # What choices add to: the profile's own lists, and the hub's where it has none.
    own = {key: overridden(base.get(key), value) for key, value in override.items()}
    base_of_choices = {**base, **own}
    options: dict[str, object] = {}
    for option_name, option in mapping(child(profile, "profile_options")).items():
        read_option = _option(option, base_of_choices, is_usual=is_usual)
        if read_option:
            options[option_name] = read_option
    if options:
        entry["profile_options"] = options
    if not entry:
        return {}
    read: dict[str, object] = {}
    for key in ("display_name", "slug"):
        name = child(profile, key)
        if isinstance(name, str):
            read[key] = name
    return {**read, **entry}


def _option(option: object, base: Mapping[str, object], *, is_usual: bool) -> dict[str, object]:
    """What Roost reads of an option's choices, and whether users may type one that isn't listed; {}
    when no choice says which images go to which nodes.
    """
    choices = {
        name: _override(choice, base, is_usual=is_usual)
        for name, choice in mapping(child(option, "choices")).items()
    }
    if not any("kubespawner_override" in choice for choice in choices.values()):
        return {}
    read: dict[str, object] = {"choices": choices}
    unlisted = child(option, "unlisted_choice")
    if child(unlisted, "enabled") is True:
        read["unlisted_choice"] = {"enabled": True, **_override(unlisted, base)}
    return read


def _override(
    holder: object, base: Mapping[str, object], *, is_usual: bool = False
) -> dict[str, object]:
    """`kubespawner_override` as far as it says which images go to which nodes; {} when it
    doesn't.
    """
    override = {
        OLD_NAMES.get(key, key): value
        for key, value in mapping(child(holder, "kubespawner_override")).items()
    }
    choice: dict[str, object] = {}
    image = text(child(override, "image"))
    # What is in braces KubeSpawner fills in for each user: {username}, or what was typed.
    is_filled_in = "{" in image and not is_unfilled(image)
    if image and (is_filled_in or is_reference(image)):
        choice["image"] = image
    labels = mapping(child(override, "node_selector"))
    if labels:
        # A label's value is text, or null, which takes it away.
        choice["node_selector"] = {
            label: value for label, value in labels.items() if isinstance(value, str | None)
        }
    for key in RESOURCE_TRAITS:
        amounts = mapping(child(override, key))
        if amounts:
            choice[key] = dict(amounts)
    for key, lint_entry in (
        ("tolerations", lint_toleration),
        ("node_affinity_required", lint_required_term),
    ):
        listed = entries(overridden(base.get(key), override.get(key)))
        if key in override and listed is not None:
            # An empty list is kept: KubeSpawner takes it in place of the users'.
            choice[key] = [entry for entry in listed if not lint_entry(entry)]
    for key in ("init_containers", "extra_containers"):
        containers = overridden(base.get(key), override.get(key))
        images = [child(container, "image") for container in entries_of(containers)]
        if any(images):
            choice[key] = [{"image": image} for image in images if text(image)]
    if is_usual:
        choice |= _sizes(override)
    read: dict[str, object] = {}
    if child(holder, "default"):
        read["default"] = True
    if choice:
        read["kubespawner_override"] = choice
    return read


def _sizes(override: Mapping[str, object]) -> dict[str, object]:
    """The guarantees of an override, as zero-to-jupyterhub writes them; 0 for one that it takes
    away.
    """
    sizes: dict[str, object] = {}
    for key, quantity_of in (("cpu_guarantee", cpu_quantity), ("mem_guarantee", spawner_memory)):
        value = override.get(key)
        size = quantity_of(value)
        if size is not None:
            sizes[key] = hub_size(value, size)
        elif key in override and value in (None, 0, "", "0"):
            sizes[key] = 0
    return sizes


def _map_pullers(draft: Draft, charts: Charts) -> None:
    hub = charts.hub
    at = (*hub.path, "prePuller")
    pulls_profiles = hub.switch("prePuller.pullProfileListImages", default=True)
    source = (*at, "pullProfileListImages")
    draft.put("prePuller.pullProfileListImages", pulls_profiles, source)
    for name, image in hub.mapping("prePuller.extraImages").items():
        parts = {key: child(image, key) for key in ("name", "tag")}
        if all(isinstance(part, str) and part for part in parts.values()):
            draft.put_each("prePuller.extraImages", {name: parts}, (*at, "extraImages", name))
        else:
            draft.reject(hub, ("prePuller", "extraImages", name), "expected name and tag")
    # BinderHub's chart has both pullers off: images are built on demand.
    pulls_by_default = charts.binder is None
    hook = hub.switch("prePuller.hook.enabled", default=pulls_by_default)
    continuous = hub.switch("prePuller.continuous.enabled", default=pulls_by_default)
    if continuous:
        _map_puller_pods(draft, hub)
        continuous_key = hub.show("prePuller.continuous.enabled")
        draft.replace_part("puller", f"{continuous_key}: false    # Roost's puller does this")
        if hook:
            draft.notes.append(
                f"{hub.show('prePuller.hook.enabled')} can stay: it makes an upgrade of the hub"
                " wait until nodes hold the new images. Roost's puller brings them too, and holds"
                " no upgrade up. To keep both of the hub's pullers instead, set Roost's"
                " prePuller.enabled: false and imageGate.pullerPods: zeroToJupyterHub."
            )
    elif hook:
        draft.put("prePuller.enabled", False, at)
        _keep_hook_only(draft, hub)
    else:
        draft.put("prePuller.enabled", False, at)
        why = (
            "Both pullers were off: no node gets images ahead of users, so there is nothing to wait"
            " for."
        )
        draft.put("imageGate.mode", "off", at, why)


def _keep_hook_only(draft: Draft, hub: HubSection) -> None:
    """Keep the puller of upgrades alone. On a node that joins later no user may wait for images:
    nobody brings them there.
    """
    at = (*hub.path, "prePuller", "continuous", "enabled")
    why = (
        "The hub pulled images during its upgrades only. Users prefer nodes that have their image.",
        "For images on new nodes too: delete the keys imageGate and prePuller.enabled here.",
    )
    draft.put("imageGate.mode", "prefer", at, *why)
    draft.put("imageGate.pullerPods", "zeroToJupyterHub", at)


def _map_puller_pods(draft: Draft, hub: HubSection) -> None:
    """The chart's pullers run where users run, and where `extraTolerations` lets them."""
    usual = hub.items("scheduling.userPods.tolerations")
    if usual is None:
        usual = listing(child(draft.defaults, "prePuller", "tolerations"))
    tolerations = [*usual, *(hub.items("prePuller.extraTolerations") or [])]
    draft.put("prePuller.tolerations", tolerations, (*hub.path, "prePuller", "extraTolerations"))
    annotations = dict(hub.mapping("prePuller.annotations"))
    draft.put("prePuller.annotations", annotations, (*hub.path, "prePuller", "annotations"))
    if hub.mapping("prePuller.labels"):
        draft.reject(hub, ("prePuller", "labels"), "all of Roost's objects get commonLabels")
    resources = kubernetes_resources(
        draft, hub, ("prePuller", "resources"), hub.mapping("prePuller.resources")
    )
    if any(resources.values()):
        for part, sizes in resources.items():
            draft.put(f"prePuller.resources.{part}", sizes, (*hub.path, "prePuller", "resources"))
