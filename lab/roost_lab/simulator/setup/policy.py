"""Turn values files into a policy: what a cluster would run under them, rendered by the generator
and read back.

Nothing is modelled twice: scheduler profiles come from the KubeSchedulerConfiguration, the
webhook's rules from release.json, the controllers from release.json, placeholders and pullers from
their manifests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, NamedTuple

import yaml

from generator.faults import Fault, raise_errors
from generator.render.deployed_scheduler import scheduler_minor
from generator.render.manifests import Manifest, render
from generator.schema.check import find_faults
from generator.values.files import read_values
from generator.values.merge import NO_SET_OPTIONS, Merged, SetOptions
from generator.values.release_name import Release
from roost.controllers.contract.planner import Planner
from roost.controllers.controllers_settings import parse_settings
from roost_core.objects.fields import JSONObject
from roost_core.objects.requests import requested
from roost_core.placement.labels import RELEASE_KEY, cluster_object_name, startup_taint
from roost_core.release.policy_mode import POLICY_MINOR, class_by_policy, gate_mode_by_policy
from roost_core.release.release_settings import ReleaseSettings
from roost_core.scheduler.plugins import NEWEST_MINOR, OLDEST_MINOR
from roost_core.scheduler.profile import Profile, default_profile, read_profiles
from roost_lab.simulator.setup.assumptions import KUBERNETES_MINORS
from roost_lab.simulator.setup.checks import AssumptionsError
from roost_lab.simulator.setup.shipped_policies import policy_files
from webhook.webhook_settings import parse_settings as parse_webhook_settings

RELEASE: Final = Release("hub", "binder")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceholderStatefulSet:
    """The StatefulSet of a placeholder set, as it is rendered."""

    name: str
    replicas: int
    labels: Mapping[str, str]
    # A pod's spec, as the StatefulSet controller would post it.
    spec: JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class PullerSet:
    """One DaemonSet of pullers: the images that each node it selects gets."""

    name: str
    labels: Mapping[str, str]
    node_selector: Mapping[str, str]
    # Container name -> image reference as written, in order of pulling.
    images: Mapping[str, str]


class Priority(NamedTuple):
    """One PriorityClass."""

    value: int
    # False: its preemptionPolicy is Never.
    preempts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What runs under one set of values."""

    name: str
    namespace: str
    release: str
    # A digest of all rendered objects that matter to a replay: equal digests give equal results.
    digest: str
    # The cluster's: 36 for Kubernetes 1.36.
    minor: int
    profiles: Mapping[str, Profile]
    # The profile of the cluster's own scheduler.
    cluster_profile: Profile
    # None: no webhook runs.
    webhook: ReleaseSettings | None
    # release.json and the scheduler's configuration; None: no controllers run.
    controllers: Mapping[str, Any] | None
    scheduler_configuration: Mapping[str, Any] | None
    placeholders: tuple[PlaceholderStatefulSet, ...]
    pullers: tuple[PullerSet, ...]
    # By the name of the PriorityClass.
    priorities: Mapping[str, Priority]
    # The PriorityClass of users' pods; "": none.
    user_class: str
    # The priority of pods without a PriorityClass.
    default_priority: Priority
    # Taints of new nodes until they hold their images: the release's, if it has one.
    startup_taints: tuple[str, ...]
    # The values from which all of this was rendered.
    merged: Merged = field(repr=False)
    # Hubs of a trace without Roost: their pods are in a namespace of their name, unseen by the
    # webhook, and name the hub's own scheduler (`other_scheduler`), whose profile is among
    # `profiles`.
    outsiders: frozenset[str] = frozenset()

    def profile_of(self, scheduler_name: str) -> Profile:
        """The profile of a schedulerName; kube-scheduler's default where Roost renders none of that
        name.
        """
        return self.profiles.get(scheduler_name) or self.cluster_profile

    @property
    def user_nodes(self) -> Mapping[str, str]:
        """Labels of the nodes that users are sent to: `singleuser.nodeSelector`."""
        return _user_nodes(self.merged.values)

    def in_minor(self, minor: int) -> Policy:
        """The same values in a cluster of this minor of Kubernetes. Raises as load_policy does."""
        return self if minor == self.minor else self._rendered(self.namespace, minor)

    def in_namespace(self, namespace: str) -> Policy:
        """The same values, installed in another namespace of the same cluster.

        Raises as load_policy does.
        """
        return self if namespace == self.namespace else self._rendered(namespace, self.minor)

    def _rendered(self, namespace: str, minor: int) -> Policy:
        return _rendered(self.name, self.merged, Release(self.release, namespace, f"v1.{minor}.0"))

    def make_planners(self) -> tuple[Planner[Any], ...]:
        """New planners of the controllers."""
        if self.controllers is None:
            return ()
        return parse_settings(self.controllers, self.scheduler_configuration, self.minor).planners

    @property
    def evictions_per_minute(self) -> int:
        """The mover's budget."""
        if self.controllers is None:
            return 0
        return int(self.controllers["placeholderMover"]["evictionsPerMinute"])


def load_policy(
    name: str,
    files: Sequence[str] = (),
    options: SetOptions = NO_SET_OPTIONS,
    release: Release = RELEASE,
) -> Policy:
    """Read the shipped policy of that name, or the values files given; `options` are as Helm's
    --set.

    Raises ValuesError, UsageError or GeneratorError as `roost render` does; KeyError for a name
    that isn't shipped; AssumptionsError for a pinned kube-scheduler that the model doesn't know.
    """
    merged = read_values(list(files) or [str(policy_files()[name])], options)
    raise_errors(find_faults(merged))
    # Cluster-wide objects exist even where somebody else creates them: a pod's priority depends on
    # its PriorityClass.
    values = {**merged.values, "clusterResources": True}
    return _rendered(name, merged._replace(values=values), release)


def _rendered(name: str, merged: Merged, release: Release) -> Policy:
    # A study may replay what the lint refuses, such as placeholders that are as important as users.
    raise_errors(find_faults(merged))
    manifests = render(merged.values, release)
    values: JSONObject = merged.values
    minor = scheduler_minor(values["scheduler"], release)
    if values["scheduler"]["target"] == "deploy" and not OLDEST_MINOR <= minor <= NEWEST_MINOR:
        file, line = merged.places.of(("scheduler", "image", "tag"))
        found = f"kube-scheduler 1.{minor}"
        expected = f"one of {', '.join(KUBERNETES_MINORS)}, whose rules the model knows"
        fix = "Leave the tag empty: the cluster's minor then decides."
        fault = Fault(file, line, "scheduler.image.tag", found, expected, fix)
        raise AssumptionsError([fault])
    has_policies = values["enabled"] and values["admission"]["mode"] == "policy"
    is_static = has_policies and release.kube_minor >= POLICY_MINOR
    rules = render(_static_rules(values), release) if is_static else manifests
    return _read_policy(name, merged, manifests, release, scheduler_minor=minor, rules=rules)


def _user_nodes(values: Mapping[str, Any]) -> Mapping[str, str]:
    labels: Mapping[str, str] = (values.get("singleuser") or {}).get("nodeSelector") or {}
    return labels


def _static_rules(values: Mapping[str, Any]) -> JSONObject:
    """Values under which the webhook does what MutatingAdmissionPolicies do: all that needs no
    facts.
    """
    gate = values["imageGate"]
    controllers = values["controllers"]
    has_labels = bool(controllers["enabled"] and controllers["replicas"])
    return {
        **values,
        "admission": {**values["admission"], "mode": "webhook"},
        "imageGate": {**gate, "mode": gate_mode_by_policy(gate["mode"], has_labels=has_labels)},
        "webhook": {**values["webhook"], "readNodes": True},
        "podClasses": {
            name: rules and class_by_policy(rules) for name, rules in values["podClasses"].items()
        },
    }


def _read_policy(
    name: str,
    merged: Merged,
    manifests: Sequence[Manifest],
    release: Release,
    *,
    scheduler_minor: int,
    rules: Sequence[Manifest],
) -> Policy:
    """Read the rendered objects back.

    scheduler_minor: of the release's own kube-scheduler, which may be pinned to another minor than
    the cluster's. rules: the objects with the webhook, or with one that does what the admission
    policies do.
    """
    bodies = [manifest.body for manifest in manifests if manifest.identity.kind in _KINDS]
    by_kind: dict[str, list[JSONObject]] = {}
    for body in bodies:
        by_kind.setdefault(str(body["kind"]), []).append(body)
    configuration = _scheduler_configuration(manifests)
    minor = max(release.kube_minor[1], OLDEST_MINOR)
    has_controllers = any(_runs_controllers(manifest) for manifest in manifests)
    controllers = _release_document(manifests) if has_controllers else None
    has_webhook = any(
        manifest.identity.kind == "MutatingWebhookConfiguration" for manifest in rules
    )
    webhook = _release_document(rules) if has_webhook else None
    gate = (controllers or {}).get("imageGate") or {}
    pullers = tuple(_read_puller(body) for body in by_kind.get("DaemonSet", ()))
    taints = gate.get("mode") == "startupTaint" and pullers
    classes = by_kind.get("PriorityClass", ())
    priorities = {body["metadata"]["name"]: _read_priority(body) for body in classes}
    user_class = cluster_object_name(release.name, release.namespace, "user")
    defaults = [_read_priority(body) for body in classes if body.get("globalDefault")]
    deciding = [
        *bodies,
        dict(_user_nodes(merged.values)),
        {"minor": minor, "scheduler": scheduler_minor},
    ]
    return Policy(
        name=name,
        release=release.name,
        namespace=release.namespace,
        digest=sha256(json.dumps(deciding, sort_keys=True, default=str).encode()).hexdigest()[:16],
        minor=minor,
        profiles={} if configuration is None else read_profiles(configuration, scheduler_minor),
        cluster_profile=default_profile(minor),
        webhook=None if webhook is None else parse_webhook_settings(webhook, revision="simulated"),
        controllers=controllers,
        scheduler_configuration=configuration,
        placeholders=tuple(_read_placeholders(body) for body in by_kind.get("StatefulSet", ())),
        pullers=pullers,
        priorities=priorities,
        user_class=user_class if user_class in priorities else "",
        default_priority=defaults[0] if defaults else Priority(0),
        startup_taints=(startup_taint(release.name, release.namespace),) if taints else (),
        merged=merged,
    )


def _release_document(manifests: Iterable[Manifest]) -> JSONObject | None:
    """release.json among these objects; None: it isn't."""
    for manifest in manifests:
        if RELEASE_KEY in _data_of(manifest):
            document: JSONObject = json.loads(str(_data_of(manifest)[RELEASE_KEY]))
            return document
    return None


def _scheduler_configuration(manifests: Iterable[Manifest]) -> JSONObject | None:
    """The KubeSchedulerConfiguration among these objects' files; None: there is none."""
    for manifest in manifests:
        for key, text in _data_of(manifest).items():
            if not key.endswith((".yaml", ".yml")):
                continue
            document = yaml.load(str(text), Loader=yaml.CSafeLoader)
            if isinstance(document, dict) and document.get("kind") == "KubeSchedulerConfiguration":
                return document
    return None


def _runs_controllers(manifest: Manifest) -> bool:
    metadata: Any = manifest.body["metadata"]
    component = metadata["labels"]["app.kubernetes.io/component"]
    return manifest.identity.kind == "Deployment" and component == "controllers"


def _data_of(manifest: Manifest) -> Mapping[str, object]:
    data = manifest.body.get("data")
    return data if isinstance(data, dict) else {}


# Kinds that matter to a replay; others (Deployments, RBAC, Services, ...) don't change where pods
# land.
_KINDS: Final = frozenset({"ConfigMap", "StatefulSet", "DaemonSet", "PriorityClass"})


def _read_priority(body: JSONObject) -> Priority:
    return Priority(int(body["value"]), preempts=body.get("preemptionPolicy") != "Never")


def _read_placeholders(body: JSONObject) -> PlaceholderStatefulSet:
    template = body["spec"]["template"]
    labels = template["metadata"].get("labels") or {}
    for container in template["spec"]["containers"]:
        resources = container.get("resources")
        if resources:
            # Simulated nodes have CPU and memory: a device comes with the node that a pod of that
            # size gets.
            resources["requests"] = {
                name: amount for name, amount in requested(resources).items() if "/" not in name
            }
    return PlaceholderStatefulSet(
        name=body["metadata"]["name"],
        replicas=int(body["spec"].get("replicas", 0)),
        labels=labels,
        spec=template["spec"],
    )


def _read_puller(body: JSONObject) -> PullerSet:
    template = body["spec"]["template"]
    spec = template["spec"]
    volumes = {
        volume["name"]: volume["image"]["reference"]
        for volume in spec.get("volumes") or ()
        if "image" in volume
    }
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    # With image volumes, a container that pulls has the name of its volume.
    images = {
        container["name"]: volumes.get(container["name"], container["image"])
        for container in containers
        if container["name"] in volumes or not volumes
    }
    labels = template["metadata"].get("labels") or {}
    nodes = spec.get("nodeSelector") or {}
    return PullerSet(
        name=body["metadata"]["name"], labels=labels, node_selector=nodes, images=images
    )
