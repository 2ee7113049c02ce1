"""Try imported values on made pods of a hub's users: the webhook's rules and the scheduler's model
say how they fare.

Nodes are made for each pod, of the pool that it asks for: one that holds its images, one that is
pulling them, and one as large as a placeholder that stands there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import jsonpatch
import yaml

from generator.faults import count_of, some
from generator.importing.result import ImportResult
from generator.importing.summary import GATE, IMAGES, PLACE, PLACEHOLDERS, TrialFindings
from generator.importing.traits import BESIDE, PRIORITY, PROFILES, SIZE, WHERE, is_known
from generator.importing.trial_pods import UserPod, user_pods
from generator.render.manifests import render
from generator.values.files import read_defaults
from generator.values.merge import coalesce
from generator.values.release_name import Release
from roost_core.objects.fields import JSONObject, MalformedObjectError
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import Node
from roost_core.objects.pod import DEFAULT_SCHEDULER, Pod
from roost_core.objects.pod_body import read_pod_body
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.requests import PLAIN_RESOURCES, PODS, requested
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
from webhook.admission import Decision, decide
from webhook.facts.facts import Facts
from webhook.patch import Change, PreferNode, RequireNode
from webhook.rules import Rulebook
from webhook.webhook_settings import read_settings

_RELEASE: Final = Release()
# In a resource's base unit.
_AMPLE: Final = 10**15
# The promise is GATE also where Roost only prefers. What is said of that has a key apart: it
# holds whatever a pod's priority is.
_PREFERENCE: Final = "preference"


class TrialWorld(NamedTuple):
    """What values render, as far as users' pods meet it. rules: None without a webhook."""

    rules: Rulebook | None
    profiles: Mapping[str, Profile]
    # Schedulers whose pods are Roost's, too.
    replaced: Sequence[str]
    # Pods of each DaemonSet; of each placeholder set, with how many there are.
    pullers: list[Pod]
    placeholders: list[tuple[int, Pod]]


class Unplaced(NamedTuple):
    """What must be so before Roost's scheduler gets some users."""

    condition: str
    # Whether it is that Roost takes over the scheduler that their pods name.
    is_of_scheduler: bool = False
    # Whether it names what the hub's Python sets, and nobody knows to what.
    names_unknown: bool = False


class UserFare(NamedTuple):
    """How some users fare."""

    says: str
    # The promises that held for them.
    promises: frozenset[str]
    # What must be so before Roost's scheduler gets them; empty: it does.
    unplaced: tuple[Unplaced, ...] = ()
    # Whether something isn't known of them that promises depend on.
    is_not_known: bool = False


class _Admitted(NamedTuple):
    """A user's pod, as it is admitted."""

    pod: Pod
    # What Roost changed in it.
    changes: Sequence[Change]
    # None: there is no webhook.
    decision: Decision | None


class _Doubt(NamedTuple):
    """Promises that can't be made, as something of a user isn't known, and what is said instead."""

    promises: frozenset[str]
    says: str


# What a user chose: a profile and choices. It tells users apart.
_Chosen = tuple[str, ...]


def try_import(result: ImportResult) -> None:
    """Say what imported values do, as made pods of the hub's users show."""
    values: dict[str, Any] = coalesce(result.values, read_defaults().values)
    users = user_pods(result, _RELEASE.namespace)
    result.judge(values, _try_users(world_of(values), users) if users else None)


def _try_users(world: TrialWorld, users: Sequence[UserPod]) -> TrialFindings:
    users_by_fare: dict[UserFare, list[_Chosen]] = {}
    for user in users:
        try:
            outcome = fare(world, user)
        except (MalformedObjectError, ValueError) as error:
            outcome = UserFare(f"no valid pod: {error}", frozenset())
        users_by_fare.setdefault(outcome, []).append(user.chosen)
    lines = {
        outcome: f"users{_whose(chosen, users)}: {outcome.says}"
        for outcome, chosen in users_by_fare.items()
    }
    promises = frozenset(promise for outcome in users_by_fare for promise in outcome.promises)
    unplaced = _unplaced_users(users_by_fare, promises)
    return TrialFindings(
        promises=promises,
        lines=list(lines.values()),
        not_known=[line for outcome, line in lines.items() if outcome.is_not_known],
        unplaced=[f"{why.condition}{_whose(chosen, users)}" for why, chosen in unplaced.items()],
        names_unknown=any(why.names_unknown for why in unplaced),
        room_is_unknown=all(user.unknown for user in users),
    )


def _unplaced_users(
    users_by_fare: Mapping[UserFare, Sequence[_Chosen]], promises: Collection[str]
) -> Mapping[Unplaced, Sequence[_Chosen]]:
    """What must be so before all users are placed, with the users whom it is about."""
    unplaced: dict[Unplaced, list[_Chosen]] = {}
    for outcome, chosen in users_by_fare.items():
        names_own_scheduler = all(why.is_of_scheduler for why in outcome.unplaced)
        # Users who name a scheduler of their own, while others don't, want it.
        if names_own_scheduler and PLACE in promises:
            continue
        for why in outcome.unplaced:
            unplaced.setdefault(why, []).extend(chosen)
    return unplaced


def _whose(some_users: Sequence[_Chosen], users: Sequence[UserPod]) -> str:
    """Name some of the users by the profiles and choices that they alone have; "": they are all.

    What most of them chose comes first; users whom no such choice names are named by all of theirs.
    """
    unnamed = list(dict.fromkeys(some_users))
    if len(unnamed) == len(users):
        return ""
    names = []
    choices = Counter(choice for chosen in some_users for choice in chosen)
    for choice, _ in choices.most_common():
        takers = {user.chosen for user in users if choice in user.chosen}
        if not takers.issubset(some_users):
            # Others chose it, too.
            continue
        if takers.intersection(unnamed):
            names.append(choice)
            unnamed = [chosen for chosen in unnamed if chosen not in takers]
    names += [" ".join(chosen) for chosen in unnamed]
    return f" of {some(names)}"


def by_kind(values: JSONObject, release: Release) -> Mapping[str, list[Any]]:
    """Kind -> the objects that values render."""
    kinds: dict[str, list[Any]] = {}
    for manifest in render(dict(values), release):
        kinds.setdefault(str(manifest.body["kind"]), []).append(manifest.body)
    return kinds


def read_rules(kinds: Mapping[str, list[Any]]) -> Rulebook | None:
    """The webhook's rules among rendered objects; None without a webhook."""
    if "MutatingWebhookConfiguration" not in kinds:
        return None
    data = [body.get("data") or {} for body in kinds.get("ConfigMap", [])]
    documents = [section[RELEASE_KEY].encode() for section in data if RELEASE_KEY in section]
    return Rulebook(read_settings(documents[0]))


def world_of(values: JSONObject) -> TrialWorld:
    """What whole values render, as far as users' pods meet it."""
    # As many placeholders as stand at first: where the controllers set the number, none would be
    # rendered.
    sets = [
        {**placeholder_set, "learn": None, "windows": []}
        for placeholder_set in values["placeholders"]
    ]
    events = {**values["events"], "enabled": False}
    kinds = by_kind({**values, "placeholders": sets, "events": events}, _RELEASE)
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
    labels = [pulled_label(_RELEASE.name, _RELEASE.namespace, image) for image in images]
    holder = _node(asked, HELD, dict.fromkeys(labels, HELD))
    puller = _node(asked, PULLING, dict.fromkeys(labels, PULLING))
    facts = Facts(
        nodes=Nodes([holder, puller]), namespaces={asked.namespace: user.namespace_labels}
    )
    admitted = _admit(world, user, facts)
    pod = admitted.pod
    profile = world.profiles.get(pod.scheduler_name) or default_profile(_RELEASE.kube_minor[1])
    promises: set[str] = set()
    # By promise: what is said of it.
    says: dict[str, str] = {}
    if pod.scheduler_name in world.profiles:
        promises.add(PLACE)
        says[PLACE] = "Roost's scheduler"
    elif pod.scheduler_name == DEFAULT_SCHEDULER:
        says[PLACE] = "the cluster's scheduler"
    else:
        says[PLACE] = f"the scheduler {pod.scheduler_name}"
    brought = _brought_to(holder, world.pullers, profile).intersection(images)
    own_image = user.pod["spec"]["containers"][0]["image"]
    is_named = bool(own_image)
    # Without the user's own image a start is cold, whatever other containers' images are there.
    if is_named and normalise_reference(own_image) in brought:
        promises.add(IMAGES)
    if world.pullers:
        says[IMAGES] = _say_brought(len(brought), len(images), is_named=is_named)
    required = sum(map(_requires_image, admitted.changes))
    prefers = any(map(_prefers_image, admitted.changes))
    goes_to = schedule(pod, ClusterState([puller, holder]), profile).node
    # Where pullers run, they bring the image to the holder. Without pullers others may bring it.
    is_brought = bool(brought) or not world.pullers
    is_kept_off_puller = (required or prefers) and is_brought and goes_to == holder.name
    if is_kept_off_puller:
        promises.add(GATE)
        if required:
            says[GATE] = f"gate on {count_of(required, 'image')}"
        else:
            says[_PREFERENCE] = "prefer nodes with their image"
    if world.placeholders:
        fit = sum(
            count
            for count, placeholder in world.placeholders
            if _keeps_room(placeholder, asked, pod, profile)
        )
        if fit:
            promises.add(PLACEHOLDERS)
        says[PLACEHOLDERS] = _say_fit(fit)
    is_placed = PLACE in promises or not world.profiles
    doubts = _doubts(user.unknown)
    for doubt in doubts:
        promises -= doubt.promises
        says = {promise: text for promise, text in says.items() if promise not in doubt.promises}
    return UserFare(
        says=", ".join([*says.values(), *(doubt.says for doubt in doubts)]),
        promises=frozenset(promises),
        unplaced=() if is_placed else _why_unplaced(world, user, admitted.decision),
        is_not_known=bool(doubts),
    )


def _brought_to(node: Node, pullers: Sequence[Pod], profile: Profile) -> set[str]:
    """Images that pullers bring to a node."""
    arriving = [puller for puller in pullers if _fits(puller, node, profile)]
    return {image for puller in arriving for image in _images(puller)}


def _requires_image(change: Change) -> bool:
    """Whether a change keeps a pod off nodes that are pulling one of its images."""
    return isinstance(change, RequireNode) and change.expression["values"] == [PULLING]


def _prefers_image(change: Change) -> bool:
    """Whether a change lets a pod prefer nodes that hold one of its images."""
    return isinstance(change, PreferNode) and HELD in str(change.term)


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


def _doubts(unknown: Mapping[str, str]) -> list[_Doubt]:
    """What isn't promised to users of whom something isn't known. unknown: as of a UserPod."""
    if PROFILES in unknown:
        text = "their profiles are set in Python: image and nodes aren't known here"
        return [_Doubt(frozenset({IMAGES, GATE, _PREFERENCE, PLACEHOLDERS}), text)]
    if WHERE in unknown:
        text = (
            f"where they go is set {unknown[WHERE]}: whether their image is brought and"
            " placeholders fit isn't known"
        )
        return [_Doubt(frozenset({IMAGES, GATE, _PREFERENCE, PLACEHOLDERS}), text)]
    doubts = []
    if PRIORITY in unknown:
        # A pod that may pre-empt others isn't held back, and placeholders give way to higher ones.
        text = (
            f"their priority is set {unknown[PRIORITY]}: whether they are held back for images"
            " and placeholders give way isn't known"
        )
        doubts.append(_Doubt(frozenset({GATE, PLACEHOLDERS}), text))
    # One doubt about whether placeholders fit is enough.
    if SIZE in unknown:
        text = f"how large they are is set {unknown[SIZE]}: whether placeholders fit isn't known"
        doubts.append(_Doubt(frozenset({PLACEHOLDERS}), text))
    elif BESIDE in unknown:
        where = f"beside which pods they go is set {unknown[BESIDE]}"
        text = f"{where}: whether placeholders fit isn't known"
        doubts.append(_Doubt(frozenset({PLACEHOLDERS}), text))
    return doubts


def _admit(world: TrialWorld, user: UserPod, facts: Facts) -> _Admitted:
    if world.rules is None:
        return _Admitted(read_pod(user.pod), (), None)
    namespace = user.pod["metadata"]["namespace"]
    decision = decide(read_pod_body(user.pod, namespace), world.rules, facts, now=0.0)
    pod = read_pod(jsonpatch.apply_patch(user.pod, list(decision.operations)))
    return _Admitted(pod, decision.changes, decision)


def _why_unplaced(
    world: TrialWorld, user: UserPod, decision: Decision | None
) -> tuple[Unplaced, ...]:
    """What must be so before Roost's scheduler gets a user. decision: None without a webhook."""
    if decision is None:
        return (Unplaced("webhook.enabled is true"),)
    unplaced = []
    if decision.pod_class is None:
        namespace = user.pod["metadata"]["namespace"]
        component = user.pod["metadata"]["labels"]["component"]
        where = f"component: {component}, namespace: {namespace}"
        unplaced.append(
            Unplaced(
                f"podClasses.user.match selects their pods ({where})",
                names_unknown=not (is_known(component) and is_known(namespace)),
            )
        )
    elif decision.reason:
        what = f"for which Roost leaves them alone ({decision.reason})"
        unplaced.append(Unplaced(f"their pods have nothing {what}"))
    # A pod that names none gets the cluster's own.
    scheduler = user.pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER
    if scheduler not in world.replaced:
        unplaced.append(
            Unplaced(
                f"replaceSchedulers has {scheduler}, named by users' pods",
                is_of_scheduler=True,
                names_unknown=not is_known(scheduler),
            )
        )
    if not unplaced:
        # Nothing keeps Roost from the pod, and its class has no scheduler of Roost's.
        unplaced.append(Unplaced(f"podClasses.{decision.pod_class}.profile names a profile"))
    return tuple(unplaced)


def _images(pod: Pod) -> list[str]:
    """Normalised references of all that it runs, or mounts to have it pulled, each once."""
    written = (*pod.spec.images, *pod.spec.volume_images)
    return list(dict.fromkeys(normalise_reference(image) for image in written if image))


def _fits(pod: Pod, node: Node, profile: Profile, *others: Pod) -> bool:
    """Whether there is room for a pod on a node, at once or when others give way to it."""
    decision = schedule(pod, ClusterState([node], others), profile)
    return decision.node is not None or decision.nomination is not None


def _keeps_room(placeholder: Pod, asked: Pod, user: Pod, profile: Profile) -> bool:
    """Whether a placeholder may stand on a node that the user asks for, and its room is enough for
    the user.
    """
    # The placeholder and the user.
    size = {PODS: 2, **dict(placeholder.spec.requests)}
    room = replace(_node(asked, "room", {}), allocatable=size)
    standing = replace(placeholder, node_name=room.name)
    return _fits(placeholder, room, profile) and _fits(user, room, profile, standing)


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
            elif operator == "Gt":
                wanted.setdefault(key, str(int(least) + 1))
            elif operator == "Lt":
                wanted.setdefault(key, str(int(least) - 1))
    taints = {
        (toleration.key, toleration.effect or "NoSchedule"): toleration.value
        for toleration in reversed(asked.spec.tolerations)
        if toleration.key and not toleration.key.startswith("node.kubernetes.io/")
    }
    tolerated = tuple(Taint(key, value, effect) for (key, effect), value in taints.items())
    return Node(name, wanted, tolerated, allocatable=_ample(asked))


def _ample(asked: Pod) -> Mapping[str, int]:
    return dict.fromkeys((PODS, *PLAIN_RESOURCES, *dict(asked.spec.requests)), _AMPLE)
