"""Which rule put a pod on its node, in an operator's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roost_core.placement.labels import USER_CLASS
from roost_core.scheduler.plugins import NODE_AFFINITY
from roost_lab.recorder.answers.pod_story import PodStory, Row
from roost_lab.recorder.store.records import Verdict

# What each of kube-scheduler's scores stands for in Roost's profiles.
_RULES: Final[Mapping[str, str]] = {
    NODE_AFFINITY: "preferred nodes (its preferred node terms)",
    "TaintToleration": "soft taints (PreferNoSchedule)",
    "InterPodAffinity": "company (whom its class joins and avoids)",
    "NodeResourcesFit": "packing (how full nodes are)",
    "NodeResourcesBalancedAllocation": "balance of CPU and memory",
    "ImageLocality": "its image (how much of it nodes hold)",
    "PodTopologySpread": "spread over nodes and zones",
}
# What preferred node terms are for each class of chart/values.yaml.
_NODE_TERMS: Final[Mapping[str, str]] = {
    USER_CLASS: (
        "warm set (nodes with its image first, in the set that carries all users) and the hub's "
        "preferred nodes"
    ),
    "build": "home (where its repository's builds meet)",
    "placeholder": "mark (the newest node attracts placeholders)",
}


def deciding_rule(story: PodStory) -> list[str]:
    """A sentence that says which rule decided between the feasible nodes; none when that isn't
    known.
    """
    chosen = story.chosen
    other = next((row for row in story.others if row["score_total"] is not None), None)
    if story.bind is None or story.bind["model"] != Verdict.AGREES:
        return []
    if chosen is None or chosen["score_total"] is None or other is None:
        return []
    if chosen["score_total"] == other["score_total"]:
        return [f"Nothing decided between it and {other['node_name']}: the same score."]
    plugin = decisive_plugin(chosen, other)
    rules = {
        **_RULES,
        NODE_AFFINITY: _NODE_TERMS.get(story.pod["pod_class"], _RULES[NODE_AFFINITY]),
    }
    return [f"What decided: {rules.get(plugin, plugin)}."]


def decisive_plugin(chosen: Row, other: Row) -> str:
    """The score that makes most of the difference between two candidates."""
    sign = 1 if chosen["score_total"] >= other["score_total"] else -1
    differences = {
        plugin: chosen["scores"].get(plugin, 0) - points
        for plugin, points in other["scores"].items()
    }
    return max(differences, key=lambda plugin: differences[plugin] * sign, default="")
