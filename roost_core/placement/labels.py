"""Own every label, annotation and object name that Roost writes or reads; nothing else spells one.

The chart's `_helpers.tpl` repeats the three shortening rules for Helm; tests/parity holds the twins together.
A release name may hold dots, a namespace and a component may not, so `<release>.<namespace>.<thing>` is never
ambiguous.
"""

from __future__ import annotations

import re
from hashlib import sha256
from sys import intern
from typing import TYPE_CHECKING, Final

from roost_core.placement.images import normalise_reference, short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

DOMAIN: Final = "hub.jupyter.org"

# Written on every pod that Roost placed: which policy did it, and why.
POLICY_REVISION_ANNOTATION: Final = "roost.hub.jupyter.org/policy-revision"
# "true" on a pod: leave it alone.
OPT_OUT_ANNOTATION: Final = "roost.hub.jupyter.org/opt-out"
# The first node of the pod's home list: lets a replica count builds that are not bound yet.
HOME_TARGET_ANNOTATION: Final = "roost.hub.jupyter.org/home-target"
# The first of the pod's warm nodes: lets replicas count pods that are not bound yet.
WARM_TARGET_ANNOTATION: Final = "roost.hub.jupyter.org/warm-target"

# All labels "this node and that image", of every hub, begin so. Their values: the image is there;
PULLED_LABEL_PREFIX: Final = "images-pulled."
HELD: Final = "true"
# it isn't, and the puller is about to bring it: users of the image keep off;
PULLING: Final = "pulling"
# it isn't, and users may come all the same, until it is there. Without the label they may come, too.
OPENED: Final = "open"

NODE_PURPOSE_LABEL: Final = f"{DOMAIN}/node-purpose"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"
COMPONENT_LABEL: Final = "component"
# On Roost's own placeholder pods: the name of their set in the values.
PLACEHOLDER_SET_LABEL: Final = "roost.hub.jupyter.org/placeholder-set"
# On the puller's pods: the name of their DaemonSet.
PULLER_SET_LABEL: Final = "roost.hub.jupyter.org/puller-set"

# On all of Roost's own pods: what runs them, and as what.
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
OWN_COMPONENT_LABEL: Final = "app.kubernetes.io/component"
OWN_PART: Final = "roost"
OWN_PLACEHOLDER: Final = "placeholder"
OWN_NAME_LABEL: Final = "app.kubernetes.io/name"
OWN_INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
# What a pod that pulls a popular image says of it: the image as users write it, for which node, how many bytes.
POPULAR_IMAGE_ANNOTATION: Final = "roost.hub.jupyter.org/popular-image"
POPULAR_NODE_ANNOTATION: Final = "roost.hub.jupyter.org/popular-node"
POPULAR_BYTES_ANNOTATION: Final = "roost.hub.jupyter.org/popular-bytes"
# cluster-autoscaler may move a pod that says "true", whatever owns it.
SAFE_TO_EVICT_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
# Volumes of a pod's own (names, by commas) whose loss keeps cluster-autoscaler from nothing.
SAFE_TO_EVICT_VOLUMES_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
# Pods that pull what the values name (a DaemonSet's), and pods that the controllers make to pull what many users run.
OWN_PULLER: Final = "puller"
OWN_POPULAR_PULLER: Final = "popular-puller"

# Autoscalers' own words on pods and nodes begin so: which of them may be moved, which must stay.
AUTOSCALER_PREFIXES: Final = ("cluster-autoscaler.kubernetes.io/", "karpenter.sh/")

MAX_LABEL_NAME: Final = 63
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


def dns_label(name: str, limit: int = MAX_LABEL_NAME) -> str:
    """Like `shorten`, for names that may not hold dots (Services, StatefulSets): dots become dashes, with a hash."""
    if "." not in name:
        return shorten(name, limit)
    return f"{name.replace('.', '-')[: limit - 9].rstrip('-._')}-{_hash(name)}"


def object_name(base: str, component: str, limit: int = MAX_LABEL_NAME) -> str:
    """Name of a namespaced object; `base` is `<release>-roost` or the values' `fullnameOverride`."""
    return dns_label(f"{base}-{component}", limit)


def cluster_object_name(release: str, namespace: str, component: str) -> str:
    """Name of an object without a namespace: holds the namespace, so that one release name in two is no clash."""
    return f"{release}.{namespace}.roost-{component}"


def scheduler_name(release: str, namespace: str, profile: str) -> str:
    """schedulerName of a profile, at most 63 characters: events carry it as `reportingController`, a qualified name."""
    return shorten(f"{release}.{namespace}.{profile}", MAX_LABEL_NAME)


def pulled_label(release: str, namespace: str, reference: str) -> str:
    """Node label that says whether a node holds the image `reference`, for the hub `release` in `namespace`.

    Its value is HELD, PULLING or OPENED. `<prefix>/<short name>-<8 hex digits of the normalised reference's SHA-256>`.
    """
    normalised = normalise_reference(reference)
    return f"{pulled_prefix(release, namespace)}{short_name(normalised)}-{_hash(normalised)}"


def pulled_prefix(release: str, namespace: str) -> str:
    """How all labels of `pulled_label` for one hub begin."""
    return f"{PULLED_LABEL_PREFIX}{release}.{namespace}.{DOMAIN}/"


def attract_label(release: str, namespace: str, placeholder_set: str) -> str:
    """Node label that draws the placeholders of one set of one hub."""
    return f"{attract_prefix(release, namespace)}{shorten(placeholder_set, MAX_LABEL_NAME)}"


def attract_prefix(release: str, namespace: str) -> str:
    """How all labels of `attract_label` for one hub begin."""
    return f"attract-placeholders.{release}.{namespace}.{DOMAIN}/"


def is_own_node_label(release: str, namespace: str, key: str) -> bool:
    """Tell whether a node label is one that this hub's controllers write, for whatever image or placeholder set."""
    prefix, slash, _ = key.partition("/")
    hub = f"{release}.{namespace}.{DOMAIN}"
    return bool(slash) and prefix in (f"{PULLED_LABEL_PREFIX}{hub}", f"attract-placeholders.{hub}")


def startup_taint(release: str, namespace: str) -> str:
    """Key of the taint under which autoscaled nodes join; cluster-autoscaler knows its prefix."""
    return f"startup-taint.cluster-autoscaler.kubernetes.io/{_hub_name(release, namespace)}"


def popular_pull_name(release: str, node: str, node_uid: str, image: str) -> str:
    """Name of the pod that brings one image to one node, at most 63 characters: a second try makes no second pod."""
    digest = sha256(f"{release} {node} {node_uid} {image}".encode()).hexdigest()[:12]
    head = dns_label(f"{release}-popular-{node}", MAX_LABEL_NAME - 13)
    return f"{head}-{digest}"


_NO_ANNOTATIONS: Final[Mapping[str, str]] = {}


def kept_annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Those annotations that Roost may ever read: its own, a hub's or an autoscaler's."""
    kept = {key: value for key, value in annotations.items() if DOMAIN in key or key.startswith(AUTOSCALER_PREFIXES)}
    # One object for the thousands that have none.
    return kept or _NO_ANNOTATIONS


def intern_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """The same labels, of texts that all records share: thousands of pods say the same of themselves."""
    return {intern(key): intern(value) for key, value in labels.items()} if labels else labels


def images_condition(release: str, namespace: str) -> str:
    """Type of the node condition that says whether one hub's images are there (True) or still come (False)."""
    return f"{pulled_prefix(release, namespace)}ImagesPulled"


def readiness_taint(release: str, namespace: str) -> str:
    """Key of the taint that a NodeReadinessRule puts on nodes: its controller takes keys of this prefix only."""
    return f"readiness.k8s.io/{_hub_name(release, namespace)}"


def _hub_name(release: str, namespace: str) -> str:
    # A dash between the two would make one name of hub/prod-eu and hub-prod/eu.
    return shorten(f"roost-{release}.{namespace}", MAX_LABEL_NAME)


def puller_component(node_selector: Mapping[str, str], rest: str = "") -> str:
    """Component of the puller for nodes with these labels: readable values, then a hash that tells selectors apart.

    rest: what else selects its nodes, as text.
    """
    pairs = sorted(node_selector.items())
    readable = _NOT_IN_NAME.sub("-", "-".join(value for _, value in pairs)).lower()[:30].strip("-")
    return "-".join(
        filter(None, ("puller", readable, _hash("".join(f"{key}={value}," for key, value in pairs) + rest)))
    )


def puller_container(reference: str) -> str:
    """Name of the puller's container for one image: readable, and one for each normalised reference."""
    normalised = normalise_reference(reference)
    return f"{short_name(normalised).lower()}-{_hash(normalised)}"
