"""Try imported values on made pods of a hub's users: the webhook's rules and the scheduler's model
say how they fare.

Nodes are made for each pod, of the pool that it asks for: one that holds its images, one that is
pulling them, and one as large as a placeholder that stands there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import jsonpatch
import yaml

from generator.faults import count_of, some
from generator.importing.result import ImportResult
from generator.importing.summary import GATE, IMAGES, PLACE, PLACEHOLDERS, TrialFindings
from generator.importing.traits import BESIDE, PRIORITY, PROFILES, SIZE, WHERE
from generator.importing.trial_pods import UserPod, user_pods
from generator.render.manifests import render
from generator.values.files import read_defaults
from generator.values.helm_release import Release
from generator.values.merge import coalesce
from roost_core.objects.fields import JSONObject, MalformedObjectError
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import Node
from roost_core.objects.pod import DEFAULT_SCHEDULER, Pod
from roost_core.objects.pod_body import read_pod_body
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.requests import PODS, requested
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import (
    HELD,
    LINUX,
    OS_LABEL,
    PLACEHOLDER_SET_LABEL,
    PULLING,
    RELEASE_KEY,
    pulled_label,
)
from roost_core.placement.nodes import Nodes
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.profile import Profile, default_profile, read_each_profile
from roost_core.scheduler.state import ClusterState
from webhook.admission import decide
from webhook.facts.facts import Facts
from webhook.patch import Change, PreferNode, RequireNode
from webhook.rules import Rulebook
from webhook.webhook_settings import read_settings

_RELEASE: Final = Release()
# In a resource's base unit.
_AMPLE: Final = 10**15
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


class TrialWorld(NamedTuple):
    """What values render, as far as users' pods meet it. rules: None without a webhook."""

    rules: Rulebook | None
    profiles: Mapping[str, Profile]
    # Schedulers whose pods are Roost's, too.
    replaced: Sequence[str]
    # Pods of each DaemonSet; of each placeholder set, with how many there are.
    pullers: list[Pod]
    placeholders: list[tuple[int, Pod]]


class UserFare(NamedTuple):
    """How some users fare."""

    says: str
    # The promises that held for them.
    promises: frozenset[str]
    # What must be so before Roost's scheduler gets them; empty: it does.
    unplaced: tuple[str, ...]


def try_import(result: ImportResult) -> None:
    """Say what imported values do, as made pods of the hub's users show."""
    values: dict[str, Any] = coalesce(result.values, read_defaults().values)
    users = user_pods(result, _RELEASE.namespace)
    result.judge(values, _try_users(world_of(values), users) if users else None)


def _try_users(world: TrialWorld, users: Sequence[UserPod]) -> TrialFindings:
    chosen_of: dict[UserFare, list[tuple[str, ...]]] = {}
    for user in users:
        try:
            outcome = fare(world, user)
        except (MalformedObjectError, ValueError) as error:
            outcome = UserFare(f"no valid pod: {error}", frozenset(), ())
        chosen_of.setdefault(outcome, []).append(user.chosen)
    lines = [
        f"users{_whose(chosen, users)}: {outcome.says}" for outcome, chosen in chosen_of.items()
    ]
    promises = frozenset(promise for outcome in chosen_of for promise in outcome.promises)
    unplaced: dict[str, list[tuple[str, ...]]] = {}
    for outcome, chosen in chosen_of.items():
        names_own = all(reason.startswith("replaceSchedulers") for reason in outcome.unplaced)
        # Users who name a scheduler of their own, while others don't, want it.
        if PLACE in promises and names_own:
            continue
        for reason in outcome.unplaced:
            unplaced.setdefault(reason, []).extend(chosen)
    reasons = [f"{reason}{_whose(chosen, users)}" for reason, chosen in unplaced.items()]
    return TrialFindings(promises, lines, reasons, all(user.unknown for user in users))


def _whose(chosen: Sequence[tuple[str, ...]], users: Sequence[UserPod]) -> str:
    """Name users by the profiles and choices that they alone have; "": they are all users."""
    rest = dict.fromkeys(chosen)
    if len(rest) == len(users):
        return ""
    names = []
    for choice, _ in Counter(choice for choices in chosen for choice in choices).most_common():
        with_it = [user.chosen for user in users if choice in user.chosen]
        if rest.keys() & with_it and all(choices in chosen for choices in with_it):
            names.append(choice)
            rest = {choices: None for choices in rest if choices not in with_it}
    names += [" ".join(choices) for choices in rest]
    return f" of {some(names)}"


def by_kind(values: JSONObject, release: Release) -> Mapping[str, list[Any]]:
    """Kind -> the objects that values render."""
    kinds: dict[str, list[Any]] = {}
    for manifest in render(dict(values), release):
        kinds.setdefault(str(manifest.body["kind"]), []).append(manifest.body)
    return kinds


def read_rules(kinds: Mapping[str, list[Any]]) -> Rulebook | None:
    """The webhook's rules among rendered objects; None without a webhook."""
    data = [body.get("data") or {} for body in kinds.get("ConfigMap", [])]
    documents = [section[RELEASE_KEY].encode() for section in data if RELEASE_KEY in section]
    return (
        Rulebook(read_settings(documents[0])) if "MutatingWebhookConfiguration" in kinds else None
    )


def world_of(values: JSONObject) -> TrialWorld:
    """What whole values render, as far as users' pods meet it."""
    sets = [
        {**placeholder_set, "learn": None} for placeholder_set in values["placeholders"]
    ]  # as many as stand at first
    kinds = by_kind({**values, "placeholders": sets}, _RELEASE)
    data = [body.get("data") or {} for body in kinds.get("ConfigMap", [])]
    configurations = [
        yaml.load(section["config.yaml"], Loader=yaml.CSafeLoader)
        for section in data
        if "config.yaml" in section
    ]
    profiles = {
        name: profile
        for configuration in configurations
        for name, profile in _profiles(configuration).items()
    }
    priority = values["priorityClasses"]["placeholder"]
    placeholders = [
        (body["spec"]["replicas"], _made(body, priority=priority))
        for body in kinds.get("StatefulSet", [])
        if body["spec"]["replicas"]
        and PLACEHOLDER_SET_LABEL in body["spec"]["template"]["metadata"]["labels"]
    ]
    replaced = [DEFAULT_SCHEDULER, *profiles, *values["replaceSchedulers"]]
    return TrialWorld(
        read_rules(kinds),
        profiles,
        replaced,
        [_made(body) for body in kinds.get("DaemonSet", [])],
        placeholders,
    )


def _profiles(configuration: JSONObject) -> Mapping[str, Profile]:
    """The profiles by scheduler name; kube-scheduler's own where the model doesn't know the hub's
    plugins.
    """
    profiles, unknown = read_each_profile(configuration, _RELEASE.kube_minor[1])
    return dict.fromkeys(unknown, default_profile(_RELEASE.kube_minor[1])) | profiles


def _made(body: JSONObject, **spec: object) -> Pod:
    """A pod of a workload."""
    template = body["spec"]["template"]
    metadata = {**template["metadata"], "name": "made", "namespace": _RELEASE.namespace}
    containers = []
    for container in template["spec"]["containers"]:
        sizes = container.get("resources") or {}
        containers.append({**container, "resources": {**sizes, "requests": requested(sizes)}})
    return read_pod(
        {"metadata": metadata, "spec": {**template["spec"], "containers": containers, **spec}}
    )


def fare(world: TrialWorld, user: UserPod) -> UserFare:
    """How a user fares whose pod is admitted and placed."""
    asked = read_pod(user.pod)
    images = _images(asked)
    labels = [pulled_label(*_RELEASE[:2], image) for image in images]
    holder = _node(asked, HELD, dict.fromkeys(labels, HELD))
    puller = _node(asked, PULLING, dict.fromkeys(labels, PULLING))
    facts = Facts(
        nodes=Nodes([holder, puller]), namespaces={asked.namespace: user.namespace_labels}
    )
    pod, changes, reasons = _admit(world, user, facts)
    profile = world.profiles.get(pod.scheduler_name) or default_profile(_RELEASE.kube_minor[1])
    promises: set[str] = set()
    says = [f"the scheduler {pod.scheduler_name}"]
    if pod.scheduler_name in world.profiles:
        promises.add(PLACE)
        says = ["Roost's scheduler"]
    elif pod.scheduler_name == DEFAULT_SCHEDULER:
        says = ["the cluster's scheduler"]
    brought = {
        image
        for daemon_pod in world.pullers
        if _fits(daemon_pod, holder, profile)
        for image in _images(daemon_pod)
    } & set(images)
    if brought:
        promises.add(IMAGES)
    if world.pullers:
        is_named = bool(user.pod["spec"]["containers"][0]["image"])
        says.append(_say_brought(len(brought), len(images), is_named=is_named))
    goes_to = schedule(pod, ClusterState([puller, holder]), profile).node
    required = sum(
        isinstance(change, RequireNode) and change.expression["values"] == [PULLING]
        for change in changes
    )
    prefers = any(isinstance(change, PreferNode) and HELD in str(change.term) for change in changes)
    if goes_to == holder.name and (required or prefers) and (brought or not world.pullers):
        promises.add(GATE)
        gate = f"gate on {count_of(required, 'image')}"
        says.append(gate if required else "prefer nodes with their image")
    if world.placeholders:
        fit = sum(
            count
            for count, placeholder in world.placeholders
            if _keeps_room(placeholder, asked, pod, profile)
        )
        if fit:
            promises.add(PLACEHOLDERS)
        says.append(_say_fit(fit))
    if user.unknown:
        promises, says = _as_known(user.unknown, promises, says)
    is_placed = PLACE in promises or not world.profiles
    return UserFare(", ".join(says), frozenset(promises), () if is_placed else reasons)


def _say_brought(brought: int, images: int, *, is_named: bool) -> str:
    """How many of a user's images pullers bring."""
    if not is_named:
        return "image not named here"
    if images > 1:
        return f"{brought} of {images} images brought"
    return "image brought" if brought else "image not brought"


def _say_fit(placeholders: int) -> str:
    """How many placeholders keep room for a user."""
    if placeholders > 1:
        return f"{count_of(placeholders, 'placeholder')} fit"
    return "1 placeholder fits" if placeholders else "no placeholder fits"


def _as_known(
    unknown: Mapping[str, str], promises: set[str], says: list[str]
) -> tuple[set[str], list[str]]:
    """What is promised to users of whom something isn't known, and what is said. unknown: by
    what it is set.
    """
    if PROFILES in unknown:
        text = "their profiles are set in Python: image and nodes aren't known here"
        return promises & {PLACE}, [*says[:1], text]
    if WHERE in unknown:
        text = (
            f"where they go is set {unknown[WHERE]}: whether their image is brought and"
            " placeholders fit isn't known"
        )
        return promises & {PLACE}, [*says[:1], text]
    if PRIORITY in unknown:
        # A pod that may pre-empt others isn't held back, and placeholders give way to higher ones.
        promises = promises - {GATE, PLACEHOLDERS}
        kept = [line for line in says if "placeholder" not in line and "gate" not in line]
        text = (
            f"their priority is set {unknown[PRIORITY]}: whether they are held back for images"
            " and placeholders give way isn't known"
        )
        if len(unknown) == 1:
            return promises, [*kept, text]
    what = "how large they are" if SIZE in unknown else "beside which pods they go"
    by = unknown.get(SIZE) or unknown[BESIDE]
    kept = [line for line in says if "placeholder" not in line]
    text = f"{what} is set {by}: whether placeholders fit isn't known"
    return promises - {PLACEHOLDERS}, [*kept, text]


def _admit(
    world: TrialWorld, user: UserPod, facts: Facts
) -> tuple[Pod, Sequence[Change], tuple[str, ...]]:
    """The pod as it is admitted, what Roost changes, and what must be so before its scheduler is
    set.
    """
    if world.rules is None:
        return read_pod(user.pod), (), ("webhook.enabled is true",)
    metadata = user.pod["metadata"]
    decision = decide(read_pod_body(user.pod, metadata["namespace"]), world.rules, facts, now=0.0)
    reasons = []
    if decision.pod_class is None:
        where = f"component: {metadata['labels']['component']}, namespace: {metadata['namespace']}"
        reasons.append(f"podClasses.user.match selects their pods ({where})")
    elif decision.reason:
        reasons.append(
            f"their pods have nothing for which Roost leaves them alone ({decision.reason})"
        )
    if (named := user.pod["spec"].get("schedulerName")) not in world.replaced or not reasons:
        reasons.append(f"replaceSchedulers has {named}, named by users' pods")
    return (
        read_pod(jsonpatch.apply_patch(user.pod, list(decision.operations))),
        decision.changes,
        tuple(reasons),
    )


def _images(pod: Pod) -> list[str]:
    """Normalised references of all that it runs, or mounts to have it pulled."""
    return list(
        dict.fromkeys(
            map(normalise_reference, filter(None, (*pod.spec.images, *pod.spec.volume_images)))
        )
    )


def _fits(pod: Pod, node: Node, profile: Profile, *others: Pod) -> bool:
    """Whether there is room for a pod on a node, at once or when others give way to it."""
    decision = schedule(pod, ClusterState([node], others), profile)
    return decision.node is not None or decision.nomination is not None


def _keeps_room(placeholder: Pod, asked: Pod, user: Pod, profile: Profile) -> bool:
    """Whether a placeholder may stand on a node that the user asks for, and its room is enough for
    the user.
    """
    room = _node(asked, "room", {})
    room = replace(room, allocatable={PODS: 2, **dict(placeholder.spec.requests)})
    return _fits(placeholder, room, profile) and _fits(
        user, room, profile, replace(placeholder, node_name=room.name)
    )


def rooms_fit(world: TrialWorld, user: UserPod) -> bool:
    """Whether a user may go wherever placeholders of some set may stand."""
    asked = read_pod(user.pod)
    profile = default_profile(_RELEASE.kube_minor[1])
    return any(
        _fits(asked, replace(_node(placeholder, "room", {}), allocatable=_ample(asked)), profile)
        for _, placeholder in world.placeholders
    )


def _node(asked: Pod, name: str, labels: Mapping[str, str]) -> Node:
    """An ample node of the pool that a pod asks for: its labels are required, its taints
    tolerated.
    """
    wanted: dict[str, str] = {OS_LABEL: LINUX, **labels, **dict(asked.spec.node_selector)}
    for term in (asked.spec.required_node_terms or ())[:1]:
        for key, operator, values in term.expressions:
            least = min(values, default="")
            if operator in ("In", "Exists"):
                wanted.setdefault(key, least)
            elif operator in ("Gt", "Lt"):
                wanted.setdefault(key, str(int(least) + (1 if operator == "Gt" else -1)))
    taints = {
        (toleration.key, toleration.effect or "NoSchedule"): toleration.value
        for toleration in reversed(asked.spec.tolerations)
        if toleration.key and not toleration.key.startswith("node.kubernetes.io/")
    }
    tolerated = tuple(Taint(key, value, effect) for (key, effect), value in taints.items())
    return Node(name, wanted, tolerated, allocatable=_ample(asked))


def _ample(asked: Pod) -> Mapping[str, int]:
    return dict.fromkeys((PODS, *_RESOURCES, *dict(asked.spec.requests)), _AMPLE)
