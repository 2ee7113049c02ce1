"""Map how large a hub's users are and where they may go, and the placeholders that stand for
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from generator.checks.contract import listing
from generator.importing import profile_pools as pools
from generator.importing.quantities import MEMORY, cpu_quantity, quantity, spawner_memory
from generator.importing.resources import kubernetes_resources, map_pull_secrets
from generator.importing.result import Draft
from generator.importing.source import UNKNOWN, Charts, HubSection, Path, child
from roost_core.objects.pod import REQUIRED
from roost_core.placement.labels import NODE_PURPOSE_LABEL

PURPOSE_TERM: Final[Mapping[str, object]] = {
    "matchExpressions": [{"key": NODE_PURPOSE_LABEL, "operator": "In", "values": ["user"]}]
}


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
    """None: the chart's default, prefer. A null deletes that, and no term is left."""
    dotted = f"scheduling.{pods}.nodeAffinity.matchNodePurpose"
    return "ignore" if hub.is_deleted(dotted) else hub.text(dotted)


def map_users(draft: Draft, charts: Charts) -> pools.Traits:
    """A user's size: as the hub writes it for `roost validate`, and (returned) as KubeSpawner is
    told.
    """
    hub = charts.hub
    traits = pools.size_traits(child(hub.data, "singleuser"))
    if (
        charts.binder is None
        and "mem_guarantee" not in traits
        and not hub.is_deleted("singleuser.memory.guarantee")
    ):
        # The chart's default; BinderHub's chart takes it away.
        traits["mem_guarantee"] = "1G"
    for trait, (_, kind, key) in pools.SIZES.items():
        dotted = f"singleuser.{kind}.{key}"
        hub.tick_off(dotted)
        value = traits.get(trait)
        if value in (None, 0, "", "0"):
            continue
        size = cpu_quantity(value) if kind == "cpu" else spawner_memory(value)
        if size is None:
            expected = "a number of CPUs" if kind == "cpu" else MEMORY
            draft.reject(hub, tuple(dotted.split(".")), f"expected {expected}")
        else:
            draft.put(dotted, hub_size(value, size), (*hub.path, *dotted.split(".")))
    for part in ("guarantees", "limits"):
        for name, value in hub.mapping(f"singleuser.extraResource.{part}").items():
            amount = quantity(value)
            if amount is not None and amount >= 0:
                source = (*hub.path, "singleuser", "extraResource", part)
                draft.put_each(f"singleuser.extraResource.{part}", {name: value}, source)
            else:
                draft.reject(
                    hub,
                    ("singleuser", "extraResource", part, name),
                    "expected a Kubernetes quantity",
                )
    return traits


def hub_size(value: object, quantity: str) -> object:
    """`value` as zero-to-jupyterhub writes it; `quantity` says the same, should the hub have
    written it otherwise.
    """
    if not isinstance(value, str) or re.fullmatch(r"[0-9]+(\.[0-9]+)?[KMGT]?", value):
        return value
    return int(quantity[:-1]) / 1000 if quantity.endswith("m") else quantity.removesuffix("i")


def map_placeholders(draft: Draft, hub: HubSection, sizes: pools.Traits, profiles: object) -> None:
    """Map the hub's placeholders to one set, and where users may go to what every set inherits.
    sizes: of a user.
    """
    at = ("scheduling", "userPlaceholder")
    source = (*hub.path, *at)
    replicas = hub.get("scheduling.userPlaceholder.replicas", "integer") or 0
    image = {key: hub.text(f"scheduling.userPlaceholder.image.{key}") for key in ("name", "tag")}
    for key, value in image.items():
        if value:
            draft.put(f"placeholder.image.{key}", value, (*source, "image", key))
    map_pull_secrets(draft, hub, "scheduling.userPlaceholder.image.pullSecrets")
    given = hub.mapping("scheduling.userPlaceholder.resources")
    sized = kubernetes_resources(draft, hub, (*at, "resources"), given) if given else {}
    traits = {**sizes, **_map_where_users_go(draft, hub)}
    titles, typical = pools.default_kind(traits, profiles)
    usual = pools.room_of(traits)
    room = pools.room_of(typical)
    if not hub.switch("scheduling.userPlaceholder.enabled", default=True):
        draft.put("placeholders", [], (*source, "enabled"), "Placeholders were off.")
        return
    for key in ("labels", "annotations"):
        own = dict(hub.mapping(f"scheduling.userPlaceholder.{key}"))
        draft.put(f"placeholder.defaults.{key}", own, (*source, key))
    # Sizes in profiles that Python sets aren't known.
    whose_usual = (
        "one user"
        if profiles != UNKNOWN
        else "`singleuser` says: write the size that your profiles give"
    )
    users = [_StoodFor(whose_usual, usual)]
    if room != usual:
        users.append(_StoodFor(f"a user of {', '.join(titles)}, the default profile", room))
    # The usual user first: should Roost reject what a profile says, the usual user's entry remains.
    for user in users:
        entry, comments = _placeholder_entry(
            user, usual, sized, replicas, is_binder=draft.is_binder
        )
        draft.put("placeholders", [entry], source, *comments)
    if replicas != 0:
        draft.switch_off.append(f"{hub.show((*at, 'replicas'))}: 0")


class _StoodFor(NamedTuple):
    """A user that placeholders may stand for."""

    # For people: "One is as large as ...".
    whose: str
    room: pools.Room


def _placeholder_entry(
    user: _StoodFor,
    usual: pools.Room,
    sized: Mapping[str, Mapping[str, str]],
    replicas: object,
    *,
    is_binder: bool,
) -> tuple[dict[str, object], list[str]]:
    """The set of placeholders that stand for a user, as an entry of `placeholders`, and what to say
    of it.

    usual: what stands for the hub's usual user. sized, replicas: as the hub's own placeholders
    were.
    """
    resources, comments = _placeholder_size(sized, user.room["resources"], user.whose)
    device = pools.device_of(user.room, {})
    entry: dict[str, object] = {"name": "default", "replicas": replicas}
    if not is_binder:
        # The hub's placeholders were as large as its usual users, or as it says: others have no
        # room in them.
        is_kept = replicas and (sized or device == pools.device_of(usual, {}))
        if device and not is_kept:
            entry["replicas"] = 0
            comments.append(pools.why_none(device))
        # Not for BinderHub. Of many images, launches wait for pulls, and nodes that placeholders
        # keep hold images: fewer placeholders would cost.
        entry |= pools.learning(device)
        comments.append(
            "timeZone: your users', so that classes aren't an hour off after a clock change."
        )
    if resources:
        entry["resources"] = resources
    entry |= pools.nodes_unlike(user.room, usual)
    return entry, comments


def _placeholder_size(
    own: Mapping[str, Mapping[str, str]], user: Mapping[str, Mapping[str, str]], whose: str
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """A placeholder as large as the user, or as the hub's `own`; and what to say of it. whose: the
    user's size.
    """
    comments = [
        (
            "As many as the hub kept; if it learns, until a week shows that fewer do, and more for"
            " learned crowds."
        )
    ]
    sizes = {part: dict(amounts) for part, amounts in (own or user).items()}
    if own:
        comments += _raise_to_user(sizes, user.get("requests", {}))
    elif sizes:
        comments.append(
            f"One is as large as {whose}. KubeSpawner's K, M, G are powers of 1024, so 1G is 1Gi"
            " here."
        )
    return {part: amounts for part, amounts in sizes.items() if amounts}, comments


def node_selector(hub: HubSection) -> tuple[dict[str, object], Path]:
    """The users' node selector, and where it stands: extra_pod_config takes the place of what it
    names.
    """
    for at in ("singleuser.extraPodConfig.nodeSelector", "singleuser.nodeSelector"):
        if found := dict(hub.mapping(at)):
            return found, (*hub.path, *at.split("."))
    return {}, (*hub.path, "singleuser", "nodeSelector")


def _map_where_users_go(draft: Draft, hub: HubSection) -> pools.Traits:
    """Map where users may go: for pullers, and as the defaults of every set of placeholders.

    Returns the same as traits of a user's pod.
    """
    why = "Where users may go, for every set of placeholders."
    tolerations_at = (*hub.path, "scheduling", "userPods", "tolerations")
    affinity_at = (*hub.path, "scheduling", "userPods", "nodeAffinity")
    tolerations = hub.items("scheduling.userPods.tolerations")
    if tolerations is None:
        tolerations = listing(child(draft.defaults, "placeholder", "defaults", "tolerations"))
    extra = hub.items("singleuser.extraTolerations") or []
    instead = hub.items("singleuser.extraPodConfig.tolerations")
    if instead is not None:
        tolerations = []
        extra = instead
    draft.put("singleuser.extraTolerations", extra, (*hub.path, "singleuser", "extraTolerations"))
    draft.put("placeholder.defaults.tolerations", [*tolerations, *extra], tolerations_at, why)
    selector, source = node_selector(hub)
    draft.put("placeholder.defaults.nodeSelector", selector, source)
    terms = _required_terms(draft, hub)
    draft.put(
        "singleuser.extraNodeAffinity.required",
        terms,
        affinity_at,
        "Which nodes users require: the puller runs on these.",
    )
    draft.put("placeholder.defaults.requiredNodeTerms", terms, affinity_at)
    return {
        "node_selector": selector,
        "tolerations": [*tolerations, *extra],
        "node_affinity_required": terms,
    }


def _required_terms(draft: Draft, hub: HubSection) -> list[object]:
    """As the users' pods have them.

    The chart adds node-purpose as one more term, and terms are ORed.
    """
    instead = hub.items(
        f"singleuser.extraPodConfig.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    )
    if instead is not None:
        return [term for term in instead if isinstance(term, Mapping) and term]
    terms: list[object] = []
    if match_purpose(hub, "userPods") == "require":
        terms.append(dict(PURPOSE_TERM))
    own = [
        item
        for item in hub.items("singleuser.extraNodeAffinity.required") or []
        if isinstance(item, Mapping) and item
    ]
    if terms and own:
        draft.notes.append(
            f"{hub.show('singleuser.extraNodeAffinity.required')} and matchNodePurpose: require are"
            " ORed by Kubernetes: users may go to nodes that meet either. Placeholders were given"
            " the same terms."
        )
    return [*terms, *own]


def _raise_to_user(resources: dict[str, dict[str, str]], user: Mapping[str, str]) -> list[str]:
    """Make a given placeholder request at least what one user does; say what was raised."""
    requests = resources.setdefault("requests", {})
    limits = resources.setdefault("limits", {})
    for name, value in limits.items():
        requests.setdefault(name, value)
    raised: list[str] = []
    for name, least in user.items():
        if (quantity(requests.get(name, 0)) or 0) < (quantity(least) or 0):
            if name in requests:
                raised.append(
                    f"{name} raised from {requests[name]} to {least}, what one user requests (K, M,"
                    " G: powers of 1024)."
                )
            requests[name] = least
            if "/" in name:
                # Kubernetes wants the same number of an extended resource in both.
                limits[name] = least
        if name in limits and (quantity(limits[name]) or 0) < (quantity(requests[name]) or 0):
            limits[name] = requests[name]
    return raised
