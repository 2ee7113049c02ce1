"""Which rule put a pod on its node, in an operator's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_core.placement.labels import USER_CLASS
from roost_lab.pages.phrases import show_plain
from roost_lab.recorder.store.records import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_lab.recorder.answers.pod_story import PodStory, Row

_NODE_AFFINITY: Final = "NodeAffinity"
# What each of kube-scheduler's scores stands for in Roost's profiles.
_RULES: Final[Mapping[str, str]] = {
    _NODE_AFFINITY: "preferred nodes (its preferred node terms)",
    "TaintToleration": "soft taints (PreferNoSchedule)",
    "InterPodAffinity": "company (whom its class joins and avoids)",
    "NodeResourcesFit": "packing (how full nodes are)",
    "NodeResourcesBalancedAllocation": "balance of CPU and memory",
    "ImageLocality": "its image (how much of it nodes hold)",
    "PodTopologySpread": "spread over nodes and zones",
}
# What preferred node terms are for each class of chart/values.yaml.
_NODE_TERMS: Final[Mapping[str, str]] = {
    USER_CLASS: "warm set (nodes with its image first, in the set that carries all users) and the hub's "
    "preferred nodes",
    "build": "home (the ring of its repository)",
    "placeholder": "mark (the newest node attracts placeholders)",
}


def deciding_rule(story: PodStory) -> list[str]:
    """A sentence that says which rule decided between the feasible nodes; none when that isn't known."""
    bind = story.bind
    if bind is None or bind["model"] != Verdict.AGREES:
        return []
    chosen = next((row for row in story.candidates if row["node_name"] == bind["node_name"]), None)
    # Best first.
    others = [row for row in story.candidates if row is not chosen and row["score_total"] is not None]
    if chosen is None or chosen["score_total"] is None or not others:
        return []
    other = others[0]
    if chosen["score_total"] == other["score_total"]:
        return [f"Nothing decided between it and {show_plain(other['node_name'])}: the same score."]
    return [f"What decided: {rule_words(decisive_plugin(chosen, other), story.pod['pod_class'])}."]


def decisive_plugin(chosen: Row, other: Row) -> str:
    """The score that makes most of the difference between two candidates."""
    sign = 1 if chosen["score_total"] >= other["score_total"] else -1
    differences = {plugin: chosen["scores"].get(plugin, 0) - points for plugin, points in other["scores"].items()}
    return max(differences, key=lambda plugin: differences[plugin] * sign, default="")


def rule_words(plugin: str, pod_class: str) -> str:
    """What a score stands for, for pods of a class."""
    if plugin == _NODE_AFFINITY and pod_class in _NODE_TERMS:
        return _NODE_TERMS[pod_class]
    return _RULES.get(plugin, plugin)
