"""Map how large a hub's users are and where they may go, and the placeholders that stand for
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from generator.importing import profile_pools as pools
from generator.importing.chart_resources import kubernetes_resources
from generator.importing.chart_traits import PURPOSE_TERM
from generator.importing.object_names import is_of_an_old_chart
from generator.importing.pull_secrets import map_pull_secrets
from generator.importing.quantities import SIZE_EXPECTED, is_less, quantity, user_size
from generator.importing.result import Draft
from generator.importing.source import UNKNOWN, Charts, HubPath, HubSection
from generator.importing.summary import MOST_PLACEHOLDERS
from generator.importing.traits import (
    UNSET,
    SetTraits,
    camel_case,
    entries,
    entries_of,
    known_of,
    pod_config_of,
)
from generator.importing.user_sizes import (
    EXTRA_RESOURCES,
    SIZES,
    Room,
    Traits,
    room_of,
    size_traits,
)
from generator.render.managed_images import CONTAINER_TRAITS
from generator.values.lookups import child, mapping
from roost_core.objects.pod import REQUIRED
from roost_core.objects.requests import requested


def map_user_terms(draft: Draft, hub: HubSection) -> None:
    """The users' own node terms come with the pods; placeholders must carry the same, or they keep
    room elsewhere.
    """
    at = ("scheduling", "userPods", "nodeAffinity", "matchNodePurpose")
    purpose = match_purpose(hub, "userPods")
    if purpose not in (None, "ignore", "prefer", "require"):
        draft.reject(hub, at, "expected ignore, prefer or require")
    if purpose == "ignore":
        why = "The hub's pods don't look for user nodes."
        draft.put("podClasses.user.preferredNodeTerms", [], (*hub.path, *at), why)
    preferred: list[object] = []
    if purpose in (None, "prefer"):  # the chart's default
        preferred.append({"weight": 100, "preference": dict(PURPOSE_TERM)})
    for item in hub.items("singleuser.extraNodeAffinity.preferred") or []:
        if isinstance(item, Mapping):
            preferred.append(dict(item))
            weight = item.get("weight")
            if isinstance(weight, int) and weight >= 50:
                draft.notes.append(
                    f"{hub.show('singleuser.extraNodeAffinity.preferred')}: a term of weight"
                    f" {weight} is as strong as Roost's own (100): among nodes that differ in it,"
                    " it can decide alone."
                )
    why = "What the hub's users prefer, so that placeholders are kept where users go."
    draft.put("podClasses.placeholder.preferredNodeTerms", preferred, (*hub.path, *at), why)


def match_purpose(hub: HubSection, pods: str) -> str | None:
    """What `matchNodePurpose` says; None: nothing, so the chart's default counts, prefer. A null
    deletes that, and no term is left.
    """
    dotted = f"scheduling.{pods}.nodeAffinity.matchNodePurpose"
    return "ignore" if hub.is_deleted(dotted) else hub.text(dotted)


def map_users(draft: Draft, charts: Charts, set_traits: SetTraits) -> Traits:
    """Map a user's size, as the hub writes it. Returns it as traits of KubeSpawner.

    set_traits: what the hub sets beside the chart's keys.
    """
    hub = charts.hub
    traits = size_traits(child(hub.data, "singleuser"))
    is_deleted = hub.is_deleted("singleuser.memory.guarantee")
    if charts.binder is None and "mem_guarantee" not in traits and not is_deleted:
        # The chart's default; BinderHub's chart takes it away.
        traits["mem_guarantee"] = "1G"
    # Traits that are set beside the chart's keys -> where.
    sources: dict[str, HubPath] = {}
    for trait in (*SIZES, *EXTRA_RESOURCES.values()):
        known = known_of(set_traits, trait)
        if known is not None:
            traits[trait] = known.value
            sources[trait] = known.at
    for trait, (_, kind, key) in SIZES.items():
        dotted = f"singleuser.{kind}.{key}"
        source = sources.get(trait, tuple(dotted.split(".")))
        hub.tick_off(dotted)
        value = traits.get(trait)
        if value in (None, 0, "", "0"):
            continue
        size = user_size(kind, value)
        if size is None:
            draft.reject(hub, source, f"expected {SIZE_EXPECTED[kind]}")
        else:
            draft.put(dotted, hub_size(value, size), (*hub.path, *source))
    for part, trait in EXTRA_RESOURCES.items():
        amounts = hub.mapping(f"singleuser.extraResource.{part}")
        source = sources.get(trait, ("singleuser", "extraResource", part))
        if trait in sources:
            amounts = mapping(traits[trait])
        for name, value in amounts.items():
            amount = quantity(value)
            if amount is not None and amount >= 0:
                at = (*hub.path, *source)
                draft.put_each(f"singleuser.extraResource.{part}", {name: value}, at)
            elif value is not None:
                draft.refuse((*hub.path, *source, name), value, "expected a Kubernetes quantity")
    return traits


def hub_size(value: object, quantity: str) -> object:
    """A size as zero-to-jupyterhub writes it. quantity: the same size, for a value that the hub has
    written in another way.
    """
    if not isinstance(value, str) or re.fullmatch(r"[0-9]+(\.[0-9]+)?[KMGT]?", value):
        return value
    return int(quantity[:-1]) / 1000 if quantity.endswith("m") else quantity.removesuffix("i")


def map_placeholders(
    draft: Draft, hub: HubSection, sizes: Traits, profiles: object, set_traits: SetTraits
) -> None:
    """Map the hub's placeholders to one set, and where users may go to what every set inherits.

    sizes: of a user. profiles: the hub's. set_traits: what the hub sets beside the chart's keys.
    """
    at = ("scheduling", "userPlaceholder")
    source = (*hub.path, *at)
    replicas = hub.get("scheduling.userPlaceholder.replicas", "integer") or 0
    image = {key: hub.text(f"scheduling.userPlaceholder.image.{key}") for key in ("name", "tag")}
    for key, part in image.items():
        if part and not is_of_an_old_chart(image["name"] or ""):
            draft.put(f"placeholder.image.{key}", part, (*source, "image", key))
    map_pull_secrets(draft, hub, "scheduling.userPlaceholder.image.pullSecrets")
    given = hub.mapping("scheduling.userPlaceholder.resources")
    sized = kubernetes_resources(draft, hub, (*at, "resources"), given) if given else {}
    where = _map_where_users_go(draft, hub, set_traits)
    traits = {**sizes, **where, **pod_containers(hub, set_traits)}
    titles, typical = pools.default_kind(traits, profiles)
    usual = room_of(traits)
    room = room_of(typical)
    if not hub.switch("scheduling.userPlaceholder.enabled", default=True):
        draft.put("placeholders", [], (*source, "enabled"), "Placeholders were off.")
        return
    annotations = dict(hub.mapping("scheduling.userPlaceholder.annotations"))
    draft.put("placeholder.defaults.annotations", annotations, (*source, "annotations"))
    if hub.mapping("scheduling.userPlaceholder.labels"):
        draft.reject(hub, (*at, "labels"), "all of Roost's objects get commonLabels")
    whose_usual = "one user"
    if profiles == UNKNOWN:
        # Sizes in profiles that Python sets aren't known.
        whose_usual = "`singleuser` says: write the size that your profiles give"
    learner = None
    if not draft.is_binder:
        # Not for BinderHub. Of many images, launches wait for pulls, and nodes that placeholders
        # keep hold images: fewer placeholders would cost.
        learner = _Learner(_server_limit(hub, set_traits), time_zone(hub, set_traits))
    users = [_StoodFor(whose_usual, usual)]
    if room != usual:
        users.append(_StoodFor(f"a user of {', '.join(titles)}, the default profile", room))
    # The usual user first: should Roost reject what a profile says, the usual user's entry remains.
    for user in users:
        entry, comments = _placeholder_entry(user, usual, sized, replicas, learner)
        draft.put("placeholders", [entry], source, *comments)
    if replicas != 0:
        draft.replace_part("placeholders", f"{hub.show((*at, 'replicas'))}: 0")


class _Learner(NamedTuple):
    """What the hub says about what its placeholders may learn."""

    # The most servers at once; 0: no limit is known.
    limit: int
    # "": nothing says which.
    zone: str


def _server_limit(hub: HubSection, set_traits: SetTraits) -> int:
    limit = child(hub.data, "hub", "activeServerLimit")
    if "active_server_limit" in set_traits:
        limit, _ = set_traits["active_server_limit"]
    return limit if type(limit) is int and limit > 0 else 0


def time_zone(hub: HubSection, set_traits: SetTraits) -> str:
    """The users' time zone, where the hub's configuration says it by TZ; "": it doesn't."""
    # Without a zone in the file nothing of it is loaded.
    from roost_core.placement.headroom_windows import is_time_zone  # noqa: PLC0415

    own, _ = set_traits.get("environment", UNSET)
    for environment in (own, child(hub.data, "singleuser", "extraEnv")):
        named = child(environment, "TZ")
        for entry in entries(environment) or []:
            if child(entry, "name") == "TZ":
                named = child(entry, "value")
        zone = child(named, "value") or named
        if isinstance(zone, str) and is_time_zone(zone):
            return zone
    return ""


class _StoodFor(NamedTuple):
    """A user that placeholders may stand for."""

    # For people: "A placeholder is as large as ...".
    whose: str
    room: Room


def _placeholder_entry(
    user: _StoodFor,
    usual: Room,
    sized: Mapping[str, Mapping[str, str]],
    replicas: object,
    learner: _Learner | None,
) -> tuple[dict[str, object], list[str]]:
    """The set of placeholders that stand for a user, as an entry of `placeholders`, and what to say
    of it.

    usual: what stands for the hub's usual user. sized, replicas: as the hub's own placeholders
    were. learner: None where nothing is learned.
    """
    resources, comments = _placeholder_size(sized, user.room["resources"], user.whose)
    device = pools.device_of(user.room, {})
    entry: dict[str, object] = {"name": "default", "replicas": replicas}
    if learner is not None:
        # The hub's placeholders were as large as its usual users, or as it says: others have no
        # room in them.
        is_kept = replicas and (sized or device == pools.device_of(usual, {}))
        if device and not is_kept:
            entry["replicas"] = 0
            comments.append(pools.why_none(device))
        seat = {"resources": resources}
        most = pools.most_of(seat, device, learner.limit, entry["replicas"])
        entry |= pools.learning(device, most, learner.zone or "UTC")
        reason = "what fills three nodes of 64 GiB and 16 CPUs"
        if most == learner.limit:
            reason = f"the hub's activeServerLimit ({learner.limit})"
        elif most > pools.most_of(seat, device, learner.limit):
            reason = "as many as the hub kept"
        elif most == MOST_PLACEHOLDERS:
            reason = "more than begin at once on most hubs"
        comments.append(f"max: {reason}. What learning may cost has another limit: prices.")
        if most not in (learner.limit, MOST_PLACEHOLDERS):
            comments.append("If more people come in your busiest hour, set max to their number.")
        if not learner.zone:
            comments.append(
                "timeZone: set your users'. With UTC, forecasts are an hour off after a clock"
                " change."
            )
    if resources:
        entry["resources"] = resources
    entry |= pools.nodes_unlike(user.room, usual)
    return entry, comments


def _placeholder_size(
    own: Mapping[str, Mapping[str, str]], user: Mapping[str, Mapping[str, str]], whose: str
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """The resources of a placeholder as large as the user, or as the hub's own; and what to say of
    it. whose: the user's size, for people.
    """
    comments = [
        (
            "The hub's number. If it learns, after a week: fewer if that is enough, and more before"
            " classes."
        )
    ]
    sizes = {part: dict(amounts) for part, amounts in (own or user).items()}
    if own:
        comments += _raise_to_user(sizes, requested(user))
    elif sizes:
        comments.append(
            f"A placeholder is as large as {whose}. KubeSpawner's K, M, G are powers of 1024: 1G is"
            " 1Gi here."
        )
    return {part: amounts for part, amounts in sizes.items() if amounts}, comments


def pod_containers(hub: HubSection, set_traits: SetTraits) -> Traits:
    """What runs in users' pods beside their image, as traits."""
    return {trait: containers_of(hub, set_traits, trait)[0] for trait in CONTAINER_TRAITS}


def containers_of(
    hub: HubSection, set_traits: SetTraits, trait: str
) -> tuple[list[object], HubPath]:
    """What runs in users' pods beside their image, and where it stands.

    trait: init_containers or extra_containers; it takes the place of the chart's key.
    """
    key = camel_case(trait)
    source: HubPath = ("singleuser", key)
    listed = hub.items(f"singleuser.{key}") or []
    known = known_of(set_traits, trait)
    containers = None if known is None else entries(known.value)
    if known is not None and containers is not None:
        listed = containers
        source = known.at
    return listed, (*hub.path, *source)


def node_selector(hub: HubSection, set_traits: SetTraits) -> tuple[dict[str, object], HubPath]:
    """The users' node selector, and where it stands.

    The trait takes the place of the chart's key, and extra_pod_config that of both.
    """
    hub.tick_off("singleuser.extraPodConfig.nodeSelector")
    selector = hub.mapping("singleuser.nodeSelector")
    source: HubPath = ("singleuser", "nodeSelector")
    known = known_of(set_traits, "node_selector")
    if known is not None and isinstance(known.value, Mapping):
        selector = known.value
        source = known.at
    in_pod = pod_config_of(set_traits).get("nodeSelector")
    if isinstance(in_pod, Mapping):
        selector = in_pod
        source = (*set_traits["extra_pod_config"].at, "nodeSelector")
    labels = {key: item for key, item in selector.items() if item is not None}
    return labels, (*hub.path, *source)


def _map_where_users_go(draft: Draft, hub: HubSection, set_traits: SetTraits) -> Traits:
    """Map where users may go: for pullers, and as the defaults of every set of placeholders.

    Returns the same as traits of a user's pod.
    """
    why = "Where users may go, for every set of placeholders."
    usual, extra, source = _tolerations(draft, hub, set_traits)
    draft.put("singleuser.extraTolerations", extra, source)
    at: HubPath = (*hub.path, "scheduling", "userPods", "tolerations")
    draft.put("placeholder.defaults.tolerations", [*usual, *extra], source if extra else at, why)
    selector, source = node_selector(hub, set_traits)
    draft.put("placeholder.defaults.nodeSelector", selector, source)
    terms, source = _required_terms(draft, hub, set_traits)
    draft.put(
        "singleuser.extraNodeAffinity.required",
        terms,
        source,
        "Which nodes users require: the puller runs on these.",
    )
    draft.put("placeholder.defaults.requiredNodeTerms", terms, source)
    return {
        "node_selector": selector,
        "tolerations": [*usual, *extra],
        "node_affinity_required": terms,
    }


def _tolerations(
    draft: Draft, hub: HubSection, set_traits: SetTraits
) -> tuple[list[object], list[object], HubPath]:
    """The chart's tolerations of all hubs, the hub's own, and where those stand.

    The trait takes the place of the chart's keys, and extra_pod_config that of both.
    """
    usual = hub.items("scheduling.userPods.tolerations")
    if usual is None:
        usual = entries_of(child(draft.defaults, "placeholder", "defaults", "tolerations"))
    extra = hub.items("singleuser.extraTolerations") or []
    source: HubPath = ("singleuser", "extraTolerations")
    hub.tick_off("singleuser.extraPodConfig.tolerations")
    known = known_of(set_traits, "tolerations")
    listed = None if known is None else entries(known.value)
    if known is not None and listed is not None:
        source = known.at
        begins_as_usual = listed[: len(usual)] == usual
        if begins_as_usual:
            extra = listed[len(usual) :]
        else:
            extra = listed
            usual = []
    in_pod = pod_config_of(set_traits).get("tolerations")
    if isinstance(in_pod, list):
        source = (*set_traits["extra_pod_config"].at, "tolerations")
        extra = in_pod
        usual = []
    return usual, extra, (*hub.path, *source)


def _required_terms(
    draft: Draft, hub: HubSection, set_traits: SetTraits
) -> tuple[list[object], HubPath]:
    """The terms as the users' pods have them, and where they stand.

    The chart adds node-purpose as one more term, and terms are ORed.
    """
    source: HubPath = ("scheduling", "userPods", "nodeAffinity")
    in_pod = f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    hub.tick_off(f"singleuser.extraPodConfig.{in_pod}")
    purpose = match_purpose(hub, "userPods")
    own = _terms_in(hub.items("singleuser.extraNodeAffinity.required"))
    affinity = pod_config_of(set_traits).get("affinity")
    if isinstance(affinity, Mapping):
        # extra_pod_config's affinity takes the place of all that the chart says of affinity.
        terms = child(affinity, "nodeAffinity", REQUIRED, "nodeSelectorTerms")
        source = (*set_traits["extra_pod_config"].at, "affinity")
        return _terms_in(terms), (*hub.path, *source)
    known = known_of(set_traits, "node_affinity_required")
    listed = None if known is None else entries(known.value)
    if known is not None and listed is not None:
        return _terms_in(listed), (*hub.path, *known.at)
    if purpose == "require" and own:
        draft.notes.append(
            f"{hub.show('singleuser.extraNodeAffinity.required')} and matchNodePurpose: require are"
            " ORed by Kubernetes: users may go to nodes that meet either. Placeholders were given"
            " the same terms."
        )
    first = [dict(PURPOSE_TERM)] if purpose == "require" else []
    return [*first, *own], (*hub.path, *source)


def _terms_in(listed: object) -> list[object]:
    return [term for term in entries_of(listed) if isinstance(term, Mapping) and term]


def _raise_to_user(resources: dict[str, dict[str, str]], user: Mapping[str, str]) -> list[str]:
    """Make a given placeholder request at least what one user does; say what was raised."""
    requests = resources.setdefault("requests", {})
    limits = resources.setdefault("limits", {})
    for name, value in limits.items():
        requests.setdefault(name, value)
    raised: list[str] = []
    for name, least in user.items():
        if is_less(requests.get(name, 0), least):
            if name in requests:
                raised.append(
                    f"{name} raised from {requests[name]} to {least}, what one user requests (K, M,"
                    " G: powers of 1024)."
                )
            requests[name] = least
            if "/" in name:
                # Kubernetes wants the same number of an extended resource in both.
                limits[name] = least
        if name in limits and is_less(limits[name], requests[name]):
            limits[name] = requests[name]
    return raised
