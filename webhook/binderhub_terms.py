"""Recognise the placement terms that BinderHub itself writes into builds, by their shape."""

from __future__ import annotations

from typing import Final

from roost_core.objects.node import HOSTNAME_LABEL

_BINDERHUB_WEIGHT: Final = 100


def is_binderhub_sticky_term(term: object) -> bool:
    """Whether BinderHub's KubernetesBuildExecutor wrote this preferred node term, for a sticky
    build.
    """
    if type(term) is not dict:
        return False
    try:
        (expression,) = term["preference"]["matchExpressions"]
        (node,) = expression["values"]
    except (KeyError, TypeError, ValueError):
        return False
    # The whole term, as BinderHub writes it for this node.
    on_node = {"key": HOSTNAME_LABEL, "operator": "In", "values": [node]}
    written = {"weight": _BINDERHUB_WEIGHT, "preference": {"matchExpressions": [on_node]}}
    return bool(term == written)


def is_binderhub_spread_term(term: object) -> bool:
    """Whether BinderHub wrote this preferred pod anti-affinity term, for a build that isn't
    sticky.
    """
    builds = {
        "labelSelector": {"matchLabels": {"component": "binderhub-build"}},
        "topologyKey": HOSTNAME_LABEL,
    }
    return term == {"weight": _BINDERHUB_WEIGHT, "podAffinityTerm": builds}
