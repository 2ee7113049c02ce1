"""A hub with one image on one of two nodes, and with builders on five: what the tests of rules
share.
"""

from roost_core.objects.fields import JSONObject
from tests.binderhub_ring import rank_nodes
from tests.builders import IMAGE, REPOSITORY, builder_nodes, expression, facts, held, node

(LABEL,) = held(IMAGE)
HOLDS = {"key": LABEL, "operator": "In", "values": ["true"]}
# What is required: the node isn't pulling the image. Nodes that nobody has labelled pass.
KEEPS_OFF = {"key": LABEL, "operator": "NotIn", "values": ["pulling"]}
PREFERS_HOLDER = {"weight": 100, "preference": {"matchExpressions": [HOLDS]}}
HERE = facts(node("n1", IMAGE), node("n2"))
RING = rank_nodes(REPOSITORY, [f"node-{index}" for index in range(5)])
FIVE = facts(*builder_nodes(), builders="node-0 node-1 node-2 node-3 node-4")
PURPOSE = {
    "weight": 100,
    "preference": {"matchExpressions": [expression("hub.jupyter.org/node-purpose", "user")]},
}


def pair(labels: dict[str, str], weight: int, **more: object) -> JSONObject:
    term = {
        "labelSelector": {"matchLabels": labels},
        "topologyKey": "kubernetes.io/hostname",
        **more,
    }
    return {"weight": weight, "podAffinityTerm": term}
