"""Nodes match what users, placeholders and builds require.

The values say what they require, and so do the pods that are there.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from generator.render.managed_images import puller_groups
from roost.doctor.evidence import (
    AUTOSCALER_STATUS,
    NODE_POOLS,
    autoscaler_words,
    count,
    pods_in_class,
    some,
)
from roost.doctor.findings import CheckReport, Finding, error, warning
from roost.doctor.install import Install
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node, node_admits
from roost_core.objects.selectors import (
    NodeRules,
    Requirement,
    node_matches,
    read_node_rules,
    untolerated,
)
from roost_core.placement.labels import NODE_PURPOSE_LABEL, OS_LABEL, POOL_LABELS

# The most findings, and the most commands or classes in a finding.
_MOST_SHOWN: Final = 6
# How alike two values of a label must be for a misspelling, from 0 to 1. `users` and `usres` are
# alike enough. `user` and `core` aren't: the pool `user` may only have no nodes now.
_ALIKE: Final = 0.75
# Taints that go by themselves, or that other checks report.
_PASSING: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "startup-taint.")
# Labels in which nodes of the same pool differ, or that all nodes have.
_OF_ALL_NODES: Final = (
    "topology.kubernetes.io/",
    "kubernetes.io/",
    "node.kubernetes.io/",
    "karpenter.k8s.",
    "karpenter.sh/capacity-type",
    "nvidia.com/",
    "feature.node.kubernetes.io/",
)
# zero-to-jupyterhub's taint of users' nodes. Some clouds allow only the second spelling.
_DEDICATED: Final = ("hub.jupyter.org/dedicated", "hub.jupyter.org_dedicated")


class _Need(NamedTuple):
    """Who requires which nodes."""

    # In words: "placeholders".
    who: str
    rules: NodeRules
    # Users of a pool, by the values.
    is_users: bool = False


def check(install: Install) -> CheckReport:
    needs = list(_needs(install))
    who_requires: dict[NodeRules, dict[str, None]] = {}
    for need in needs:
        who_requires.setdefault(need.rules, {})[need.who] = None
    # How many nodes admit pods with these rules.
    admitting: dict[NodeRules, int] = {}
    for rules in who_requires:
        admitting[rules] = sum(node_admits(rules, node) for node in install.nodes)
    counts = [f"{' + '.join(names)}: {admitting[rules]}" for rules, names in who_requires.items()]
    numbers = some(counts, _MOST_SHOWN)
    yield f"of {count(len(install.nodes), 'node')}, may use: {numbers or 'no class is placed'}"
    if not install.nodes or not install.values["enabled"]:
        return
    of_users = dict.fromkeys(need.rules for need in needs if need.is_users)
    yield from _find_unlabelled(install, list(of_users))
    kept_out = [
        (rules, ", ".join(names)) for rules, names in who_requires.items() if not admitting[rules]
    ]
    if not kept_out:
        # Looking for an autoscaler costs requests.
        return
    may_come = _has_autoscaler(install)
    findings = [_find_why_kept_out(rules, who, install.nodes, may_come) for rules, who in kept_out]
    yield from [finding for finding in findings if finding is not None][:_MOST_SHOWN]


def _find_unlabelled(install: Install, rules: list[NodeRules]) -> CheckReport:
    """Find nodes that look like users' nodes, but lack the label by which users are sent there.

    rules: of users. If a label is required of all users, a node looks so by its pool or by the
    taint of users' nodes. If only a profile requires a label, the taint says nothing about it.
    """
    selectors = [set(user_rules.node_selector) for user_rules in rules]
    of_all_users = {(NODE_PURPOSE_LABEL, "user")}
    if selectors:
        of_all_users |= set.intersection(*selectors)
    for key, value in sorted(of_all_users.union(*selectors)):
        if key.startswith(_OF_ALL_NODES):
            continue
        holders = [node for node in install.nodes if node.labels.get(key) == value]
        pools = {_pool(node) for node in holders} - {""}
        taint_shows_it = (key, value) in of_all_users
        lacking: list[str] = []
        for node in install.nodes:
            if key in node.labels:
                continue
            if _pool(node) in pools or (taint_shows_it and _is_dedicated(node)):
                lacking.append(node.name)
        if holders and lacking:
            labels = [f"kubectl label node {name} {key}={value}" for name in lacking[:_MOST_SHOWN]]
            yield warning(
                f"{count(len(lacking), 'node')} without the label {key}={value}, in a pool or with"
                f" a taint of users' nodes: {some(lacking)}. Users are sent past them.",
                f"`{' && '.join(labels)}`, and give the label in the pool's configuration: nodes"
                " that come later have it then.",
            )


def _pool(node: Node) -> str:
    """The pool of a node, as its provider names it; "": none."""
    return next((node.labels[key] for key in POOL_LABELS if key in node.labels), "")


def _is_dedicated(node: Node) -> bool:
    """Whether only users may use a node, by zero-to-jupyterhub's taint."""
    return any(taint.key in _DEDICATED and taint.value == "user" for taint in node.taints)


def _find_why_kept_out(
    rules: NodeRules, who: str, nodes: list[Node], may_come: bool
) -> Finding | None:
    """Why no node admits pods with these rules; None if nodes will admit them without help.

    may_come: an autoscaler may add nodes that match.
    """
    matching = [node for node in nodes if node_matches(rules, node.name, node.labels)]
    if not matching:
        near = _misspelt(rules, nodes)
        if may_come and not near:
            return None
        finding = warning if may_come else error
        return finding(
            f"No node matches what {who} require: {_text(rules)};"
            f" {near or 'no autoscaler is seen'}.",
            "kubectl get nodes --show-labels; correct the pool's labels, or the node selector here"
            " and in the hub's values.",
        )
    untolerated_taints = [
        untolerated(node.taints, rules.tolerations) for node in matching if not node.unschedulable
    ]
    taints = {taint.key for taint in untolerated_taints if taint is not None}
    if any(key.startswith(_PASSING) for key in taints):
        return None
    why = "they are cordoned."
    fix = "kubectl uncordon, once whoever drains them is done."
    if taints:
        why = f"nothing tolerates the taint {some(sorted(taints))}."
        fix = (
            "Tolerate it (singleuser.extraTolerations, the profile's tolerations), here and in the"
            " hub's values."
        )
    return error(
        f"Of {count(len(matching), 'node')} with the right labels, none is for {who}: {why}", fix
    )


def _misspelt(rules: NodeRules, nodes: list[Node]) -> str:
    """Which labels of nodes are nearly the required labels, in words. "": none is."""
    wanted = list(rules.node_selector)
    for term in rules.required_node_terms or ():
        for expression in term.expressions:
            if expression.operator == "In":
                wanted += [(expression.key, value) for value in sorted(expression.values)]
    near: list[str] = []
    for key, value in dict.fromkeys(wanted):
        values = {node.labels[key] for node in nodes if key in node.labels}
        if value not in values:
            alike = get_close_matches(value, sorted(values), cutoff=_ALIKE)
            near += [f"{key}={alike_value}" for alike_value in alike]
    return f"nodes have {some(near)}" if near else ""


def _needs(install: Install) -> Iterator[_Need]:
    """Who requires which nodes: users of each pool by the values, then placeholders, then the pods
    that are there.
    """
    # The pools are those that pullers would serve if each had an image to bring.
    singleuser = dict(install.values["singleuser"])
    if not singleuser["image"].get("name"):
        singleuser["image"] = {"name": "any", "tag": "1"}
    puller = {**install.values["prePuller"], "nodeSelector": {}, "extraImages": {}}
    for group in puller_groups(singleuser, puller):
        pool = " ".join(f"{key}={value}" for key, value in group.node_selector.items())
        terms = list(group.required_terms) or None
        who = "users" if group.component == "puller" else f"users ({pool or 'of a profile'})"
        rules = read_node_rules(group.node_selector, terms, group.tolerations)
        yield _Need(who, rules, is_users=True)
    for body in install.of_kind("StatefulSet"):
        yield _Need("placeholders", _rules_of(body["spec"]["template"]))
    for name, pod_class in install.values["podClasses"].items():
        for pod in pods_in_class(install, pod_class):
            if (pod.get("status") or {}).get("phase") in ("Pending", "Running"):
                yield _Need(f"pods of class {name}", _rules_of(pod))


def _rules_of(pod: JSONObject) -> NodeRules:
    spec: Any = pod.get("spec") or {}
    # Kubelets set this label on all nodes. The hub's values don't name it.
    selector = {
        key: value for key, value in (spec.get("nodeSelector") or {}).items() if key != OS_LABEL
    }
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get(
        "nodeSelectorTerms"
    )
    return read_node_rules(selector, required, spec.get("tolerations") or ())


def _has_autoscaler(install: Install) -> bool:
    """Whether an autoscaler may add nodes. In managed clusters, only its ConfigMap shows it."""
    is_seen = any(install.client.find(path) is not None for path in (NODE_POOLS, AUTOSCALER_STATUS))
    return is_seen or any(map(autoscaler_words, install.deployments))


def _text(rules: NodeRules) -> str:
    """What rules require of a node's labels, in words."""
    parts = [f"{key}={value}" for key, value in rules.node_selector]
    terms = [
        " and ".join(map(_expression_text, term.expressions))
        for term in rules.required_node_terms or ()
    ]
    if any(terms):
        parts.append(" or ".join(terms))
    return ", ".join(parts)


def _expression_text(expression: Requirement) -> str:
    values = ",".join(sorted(expression.values))
    return f"{expression.key} {expression.operator} {values}".rstrip()
