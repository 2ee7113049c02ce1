"""All labels, annotations and object names that Roost writes or reads; no other module spells one.

The chart's twins of these functions are in chart/templates/_names.tpl. A release name may contain
dots, a namespace and a component must not, so `<release>.<namespace>.<thing>` is never ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from roost_core.objects.image_references import normalise_reference, short_name
from roost_core.objects.metadata import DOMAIN

# On every pod that Roost placed: the revision of the rules that did it.
POLICY_REVISION_ANNOTATION: Final = "roost.hub.jupyter.org/policy-revision"
# "true" on a pod: Roost doesn't touch it.
OPT_OUT_ANNOTATION: Final = "roost.hub.jupyter.org/opt-out"
# The first node of the pod's home list: lets a replica count builds that are not bound yet.
HOME_TARGET_ANNOTATION: Final = "roost.hub.jupyter.org/home-target"
# The first of the pod's warm nodes: lets replicas count pods that are not bound yet.
WARM_TARGET_ANNOTATION: Final = "roost.hub.jupyter.org/warm-target"

# The prefix of all node labels about images, of every hub. Their values: the node has the image;
PULLED_LABEL_PREFIX: Final = "images-pulled."
HELD: Final = "true"
# it lacks the image, the puller is about to pull it, and users of the image keep off;
PULLING: Final = "pulling"
# it lacks the image, but users may come. Without the label they may come, too.
OPENED: Final = "open"

NODE_PURPOSE_LABEL: Final = f"{DOMAIN}/node-purpose"
# On each node of Karpenter's.
KARPENTER_POOL_LABEL: Final = "karpenter.sh/nodepool"
# On each node of a pool: its name. Nodes of one pool have one size and one kubelet configuration.
POOL_LABELS: Final = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    KARPENTER_POOL_LABEL,
)
# Each of Roost's programs and pullers runs on such nodes alone.
OS_LABEL: Final = "kubernetes.io/os"
LINUX: Final = "linux"
NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"
COMPONENT_LABEL: Final = "component"
# On Roost's own placeholder pods: the name of their set in the values.
PLACEHOLDER_SET_LABEL: Final = "roost.hub.jupyter.org/placeholder-set"
# On the puller's pods: the name of their DaemonSet.
PULLER_SET_LABEL: Final = "roost.hub.jupyter.org/puller-set"

# The class of users' servers in chart/values.yaml, and the key of their priority there.
USER_CLASS: Final = "user"
PLACEHOLDER_CLASS: Final = "placeholder"

# The key of the webhook's ConfigMap that holds its rules.
RELEASE_KEY: Final = "release.json"
# The keys of the webhook's Secret, of whichever mode: a leaf with its chain, and its key.
TLS_CERTIFICATE_KEY: Final = "tls.crt"
TLS_PRIVATE_KEY: Final = "tls.key"
# The hub's service that seats people, as docs/seated.md and `roost import` have it.
SEATING_SERVICE: Final = "roost-seating"
# In managedFields, of what the controllers write.
CONTROLLERS_MANAGER: Final = "roost-controllers"

# On a ConfigMap in the release's namespace: it books events for the release of that name.
EVENTS_LABEL: Final = "roost.hub.jupyter.org/events"
# The ConfigMap, with that label, by which a hub of another namespace books: RBAC knows names, and
# no labels.
HUB_BOOKINGS: Final = "roost-events"
# The key of either.
EVENTS_KEY: Final = "events.yaml"
# The name of the profile beside one that packs, or that puts images first, ends with this. No name
# in the values has a "_".
STRICT_SUFFIX: Final = "_strict"

# On all of Roost's own pods: what runs them, and as what.
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
OWN_COMPONENT_LABEL: Final = "app.kubernetes.io/component"
OWN_PART: Final = "roost"
OWN_PLACEHOLDER: Final = "placeholder"
OWN_NAME_LABEL: Final = "app.kubernetes.io/name"
OWN_INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
# On a pod that pulls a popular image: the image as users' pods name it, the node, the image's
# bytes.
POPULAR_IMAGE_ANNOTATION: Final = "roost.hub.jupyter.org/popular-image"
POPULAR_NODE_ANNOTATION: Final = "roost.hub.jupyter.org/popular-node"
POPULAR_BYTES_ANNOTATION: Final = "roost.hub.jupyter.org/popular-bytes"
# "true": cluster-autoscaler may evict the pod, whatever its owner.
SAFE_TO_EVICT_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
# "true": Karpenter moves the pod to no other node.
DO_NOT_DISRUPT_ANNOTATION: Final = "karpenter.sh/do-not-disrupt"
# Local volumes of a pod (names, comma-separated) that don't keep cluster-autoscaler from evicting
# it.
SAFE_TO_EVICT_VOLUMES_ANNOTATION: Final = (
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
)
# Components: pods of the puller's DaemonSets, and pods that the controllers create to pull popular
# images.
OWN_PULLER: Final = "puller"
OWN_POPULAR_PULLER: Final = "popular-puller"


MAX_LABEL_NAME: Final = 63
MAX_DASHBOARD_UID: Final = 40
# A dash and the digest end the name of a pod that pulls a popular image.
_MAX_POPULAR_HEAD: Final = MAX_LABEL_NAME - 13
# A StatefulSet's pods carry `<name>-<10 characters>` as a label value of at most 63.
MAX_STATEFULSET_NAME: Final = 52
_NOT_IN_NAME: Final = re.compile("[^A-Za-z0-9]+")


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]


def shorten(name: str, limit: int) -> str:
    """Return `name`, or its head and an 8-digit hash when it is longer than `limit` characters."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9].rstrip('-._')}-{_hash(name)}"


def dns_label(name: str, limit: int) -> str:
    """Like `shorten`, for names that may not hold dots (Services, StatefulSets): dots become
    dashes, with a hash.
    """
    if "." not in name:
        return shorten(name, limit)
    return f"{name.replace('.', '-')[: limit - 9].rstrip('-._')}-{_hash(name)}"


def base_name(release: str, override: object = "") -> str:
    """How the names of a release's namespaced objects begin: `roost` for the release roost,
    `hub-roost` for hub.

    override: the values' `fullnameOverride`. `-roost` is left out only where the release begins
    with roost: were `hub-roost` taken as it is, too, the releases hub and hub-roost would share all
    names.
    """
    if override:
        return str(override)
    return release if release.startswith("roost") else f"{release}-roost"


def object_name(base: str, component: str, limit: int = MAX_LABEL_NAME) -> str:
    """Name of a namespaced object; `base` as `base_name` gives it."""
    return dns_label(f"{base}-{component}", limit)


def cluster_object_name(release: str, namespace: str, component: str) -> str:
    """Name of an object without a namespace: holds the namespace, so that one release name in two
    is no clash.
    """
    return f"{release}.{namespace}.roost-{component}"


def dashboard_uid(release: str, namespace: str, kind: str) -> str:
    """Grafana's name for a dashboard in links: at most 40 characters, and no dots."""
    return dns_label(f"roost-{kind}_{release}_{namespace}", MAX_DASHBOARD_UID)


def scheduler_name(release: str, namespace: str, profile: str) -> str:
    """schedulerName of a profile, at most 63 characters: events carry it as `reportingController`,
    a qualified name.
    """
    return shorten(f"{release}.{namespace}.{profile}", MAX_LABEL_NAME)


def pulled_label(release: str, namespace: str, reference: str) -> str:
    """Node label that says whether a node holds the image `reference`, for the hub `release` in
    `namespace`.

    Its value is HELD, PULLING or OPENED. `<prefix>/<short name>-<8 hex digits of the normalised
    reference's SHA-256>`.
    """
    normalised = normalise_reference(reference)
    return f"{pulled_prefix(release, namespace)}{short_name(normalised)}-{_hash(normalised)}"


def pulled_prefix(release: str, namespace: str) -> str:
    """The prefix of all labels of `pulled_label` for one hub."""
    return f"{PULLED_LABEL_PREFIX}{release}.{namespace}.{DOMAIN}/"


def attract_label(release: str, namespace: str, placeholder_set: str) -> str:
    """Node label that attracts the placeholders of one set of one hub."""
    return f"{attract_prefix(release, namespace)}{shorten(placeholder_set, MAX_LABEL_NAME)}"


def attract_prefix(release: str, namespace: str) -> str:
    """The prefix of all labels of `attract_label` for one hub."""
    return f"attract-placeholders.{release}.{namespace}.{DOMAIN}/"


def is_own_node_label(release: str, namespace: str, key: str) -> bool:
    """Whether a node label is one that this hub's controllers write, for whatever image or
    placeholder set.
    """
    prefix, slash, _ = key.partition("/")
    hub = f"{release}.{namespace}.{DOMAIN}"
    return bool(slash) and prefix in (f"{PULLED_LABEL_PREFIX}{hub}", f"attract-placeholders.{hub}")


def hub_of(labels: Mapping[str, str], namespace: str) -> str:
    """The hub that a pod belongs to, `<release>.<namespace>`; "" when its labels don't name the
    release.
    """
    release = labels.get("release") or labels.get("app.kubernetes.io/instance")
    return f"{release}.{namespace}" if release else ""


# With a taint that begins so, cluster-autoscaler treats a node as still starting.
STARTUP_PREFIXES: Final = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)


def startup_taint(release: str, namespace: str) -> str:
    """Key of the taint with which autoscaled nodes join; cluster-autoscaler recognises its
    prefix.
    """
    # With a dash between the two, hub/prod-eu and hub-prod/eu would have the same name.
    return f"{STARTUP_PREFIXES[0]}{shorten(f'roost-{release}.{namespace}', MAX_LABEL_NAME)}"


def popular_prefix(release: str) -> str:
    """How the name of each pod that pulls a popular image begins, whatever its node."""
    prefix = f"{release}-popular-".replace(".", "-")
    # What `dns_label` leaves of a long name before its hash.
    kept = _MAX_POPULAR_HEAD - 9
    return prefix if len(prefix) <= kept else prefix[:kept].rstrip("-._")


def popular_pull_name(release: str, node: str, node_uid: str, image: str) -> str:
    """Name of the pod that pulls one image to one node, at most 63 characters; a retry has the same
    name.
    """
    digest = sha256(f"{release} {node} {node_uid} {image}".encode()).hexdigest()[:12]
    head = dns_label(f"{release}-popular-{node}", _MAX_POPULAR_HEAD)
    return f"{head}-{digest}"


def puller_component(node_selector: Mapping[str, str], rest: str = "") -> str:
    """Component of the puller for nodes with these labels: readable values, then a hash that tells
    selectors apart.

    rest: what else selects its nodes, as text.
    """
    values = "-".join([value for _, value in sorted(node_selector.items())])
    pairs = "".join([f"{key}={value}," for key, value in sorted(node_selector.items())])
    readable = _NOT_IN_NAME.sub("-", values).lower()[:30].strip("-")
    head = f"puller-{readable}" if readable else "puller"
    return f"{head}-{_hash(pairs + rest)}"


def puller_container(reference: str) -> str:
    """Name of the puller's container for one image: readable, and one for each normalised
    reference.
    """
    normalised = normalise_reference(reference)
    return f"{short_name(normalised).lower()}-{_hash(normalised)}"
