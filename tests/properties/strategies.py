"""Draw pods, facts and garbage for property tests."""

from typing import Any

from hypothesis import strategies as st

from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node
from roost_core.objects.pod import PREFERRED, REQUIRED
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import (
    HOME_TARGET_ANNOTATION,
    KARPENTER_POOL_LABEL,
    OPT_OUT_ANNOTATION,
    POLICY_REVISION_ANNOTATION,
)
from roost_core.placement.nodes import Nodes
from tests.builders import IMAGE, held, node, spread_term, sticky_term
from webhook.facts.facts import Facts

IMAGES = [IMAGE, "quay.io/jupyter/r-notebook:1", "example.org/own:1", "busybox"]
NODE_NAMES = [f"node-{index}" for index in range(6)]
KEYS = ["zone", "pool", "kubernetes.io/hostname", "hub.jupyter.org/node-purpose", *held(IMAGE)]
VALUES = ["a", "b", "user", "true", "node-1"]

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def expressions(draw: st.DrawFn) -> JSONObject:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
    values = (
        []
        if "Exist" in operator
        else draw(st.lists(st.sampled_from([*VALUES, "7"]), min_size=1, max_size=2))
    )
    found = {"key": draw(st.sampled_from(KEYS)), "operator": operator}
    return {**found, "values": values} if values else found


fields = st.builds(
    lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from(NODE_NAMES),
)
node_terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(expressions(), max_size=2) | st.none(),
        "matchFields": st.lists(fields, max_size=1),
    },
)
weights = st.integers(1, 100)
preferred_node_terms = st.builds(
    lambda weight, term: {"weight": weight, "preference": term}, weights, node_terms
) | st.sampled_from(NODE_NAMES).map(sticky_term)
label_selectors = st.sampled_from(
    [
        {"matchLabels": {"component": "singleuser-server"}},
        {"matchLabels": {"component": "binderhub-build"}},
        {
            "matchExpressions": [
                {"key": "component", "operator": "In", "values": ["singleuser-server"]}
            ]
        },
        {},
    ]
)
pod_affinity_terms = st.builds(
    lambda weight, selector, more: {
        "weight": weight,
        "podAffinityTerm": {
            "labelSelector": selector,
            "topologyKey": "kubernetes.io/hostname",
            **more,
        },
    },
    weights,
    label_selectors,
    st.sampled_from([{}, {"namespaces": ["jhub"]}, {"namespaceSelector": {}}]),
) | st.just(spread_term())
pod_affinities = st.none() | st.fixed_dictionaries(
    {}, optional={PREFERRED: st.none() | st.lists(pod_affinity_terms, max_size=3)}
)
node_affinities = st.none() | st.fixed_dictionaries(
    {},
    optional={
        PREFERRED: st.none() | st.lists(preferred_node_terms, max_size=3),
        REQUIRED: st.none()
        | st.fixed_dictionaries(
            {"nodeSelectorTerms": st.lists(node_terms, min_size=1, max_size=3)}
        ),
    },
)
affinities = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "nodeAffinity": node_affinities,
        "podAffinity": pod_affinities,
        "podAntiAffinity": pod_affinities,
    },
)
amounts = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "100m", "1Gi"]))
resources = st.none() | st.fixed_dictionaries(
    {}, optional={"requests": st.none() | amounts, "limits": st.none() | amounts}
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.just("main"), "image": st.sampled_from(IMAGES)},
        optional={
            "resources": resources,
            "env": st.none()
            | st.just([{"name": "BINDER_REPO_URL", "value": "https://a/b"}, {"name": "EMPTY"}]),
        },
    ),
    min_size=1,
    max_size=3,
)
tolerations = st.sampled_from(
    [
        {"operator": "Exists"},
        {"key": "dedicated", "operator": "Equal", "value": "user"},
        {"key": "x", "operator": "Exists"},
    ]
)
specs = st.fixed_dictionaries(
    {"containers": containers},
    optional={
        "schedulerName": st.sampled_from(
            ["default-scheduler", "my-own", "replace-me", "hub.jhub.user", None]
        ),
        "affinity": affinities,
        "nodeSelector": st.none()
        | st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1),
        "tolerations": st.none() | st.lists(tolerations, max_size=2),
        "initContainers": st.none() | containers,
        "nodeName": st.sampled_from(["", "node-1"]),
        "priority": st.integers(-10, 10),
        "schedulingGates": st.just([{"name": "a/b"}]),
    },
)
pod_annotations = st.dictionaries(
    st.sampled_from(
        [
            "binder-repo",
            POLICY_REVISION_ANNOTATION,
            HOME_TARGET_ANNOTATION,
            OPT_OUT_ANNOTATION,
            "with/slash~tilde",
        ]
    ),
    st.sampled_from(["true", "node-1", "https://github.com/org/repo"]),
    max_size=3,
)
components = st.sampled_from(["singleuser-server", "binderhub-build", "user-placeholder", "hub"])
metadata = st.builds(
    lambda component, more: {"labels": {"component": component}, **more},
    components,
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.just("a-pod"),
            "generateName": st.just("a-"),
            "annotations": st.none() | pod_annotations,
        },
    ),
)
# Pods as an API server would take them, with odd but valid corners.
pods: st.SearchStrategy[JSONObject] = st.builds(
    lambda metadata, spec: {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
    metadata,
    specs,
)

taints = st.sampled_from(
    [Taint("dedicated", "user", "NoSchedule"), Taint("leaving", "", "PreferNoSchedule")]
)


def _node(
    name: str, images: list[str], labels: dict[str, str], more: tuple[list[Taint], bool, bool]
) -> Node:
    node_taints, unschedulable, ready = more
    return node(
        name,
        *images,
        labels=labels,
        taints=tuple(node_taints),
        unschedulable=unschedulable,
        ready=ready,
    )


nodes = st.lists(
    st.builds(
        _node,
        st.sampled_from(NODE_NAMES),
        st.lists(st.sampled_from(IMAGES), max_size=2),
        st.dictionaries(
            st.sampled_from(["zone", "pool", KARPENTER_POOL_LABEL]),
            st.sampled_from(VALUES),
            max_size=1,
        ),
        st.tuples(st.lists(taints, max_size=1), st.booleans(), st.booleans()),
    ),
    max_size=5,
)
facts: st.SearchStrategy[Facts] = st.builds(
    lambda known, builders: Facts(nodes=known, builder_nodes={"build": builders}),
    st.none() | nodes.map(Nodes),
    st.frozensets(st.sampled_from(NODE_NAMES)),
)
# Changes at the top of the policy document.
rule_changes: st.SearchStrategy[JSONObject] = st.fixed_dictionaries(
    {
        "replaceSchedulers": st.sampled_from([[], ["replace-me"]]),
        "scheduler": st.fixed_dictionaries({"target": st.sampled_from(["deploy", "none"])}),
        "imageGate": st.fixed_dictionaries(
            {"mode": st.sampled_from(["requireLabel", "prefer", "off"])}
        ),
        "prePuller": st.sampled_from(
            [{}, {"extraImages": {"r": {"name": "quay.io/jupyter/r-notebook", "tag": "1"}}}]
        ),
        "podClasses": st.fixed_dictionaries(
            {
                "build": st.fixed_dictionaries(
                    {
                        "home": st.sampled_from([{}, {"weights": [100]}, {"weights": [3, 2]}]),
                        "join": st.sampled_from([{}, {"build": 3}]),
                    }
                ),
                "user": st.sampled_from(
                    [{}, {"resources": {"cpu": "10m"}}, {"avoid": {"placeholder": 2}}]
                ),
            }
        ),
    }
)
