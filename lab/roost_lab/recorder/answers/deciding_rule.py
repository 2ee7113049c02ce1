"""Which rule put a pod on its node, in an operator's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roost_core.placement.labels import USER_CLASS
from roost_core.scheduler.plugins import NODE_AFFINITY
from roost_lab.recorder.answers.pod_story import PodStory, Row
from roost_lab.recorder.store.records import Verdict

# kube-scheduler's score -> what it stands for in Roost's profiles.
_RULES: Final[Mapping[str, str]] = {
    NODE_AFFINITY: "preferred nodes (its preferred node terms)",
    "TaintToleration": "soft taints (PreferNoSchedule)",
    "InterPodAffinity": "company (whom its class joins and avoids)",
    "NodeResourcesFit": "packing (how full nodes are)",
    "NodeResourcesBalancedAllocation": "balance of CPU and memory",
    "ImageLocality": "its image (how much of it nodes hold)",
    "PodTopologySpread": "spread over nodes and zones",
}
# Class of chart/values.yaml -> what its preferred node terms stand for.
_NODE_TERMS: Final[Mapping[str, str]] = {
    USER_CLASS: (
        "warm set (nodes with its image first, in the set that carries all users) and the hub's "
        "preferred nodes"
    ),
    "build": "home (where its repository's builds meet)",
    "placeholder": "mark (the newest node attracts placeholders)",
}


def deciding_rule(story: PodStory) -> list[str]:
    """A sentence that says which rule decided between the feasible nodes; [] when that isn't known.

    It compares the chosen node with the best of the others.
    """
    if story.bind is None or story.bind["model"] != Verdict.AGREES:
        return []
    chosen = story.chosen
    runner_up = next((row for row in story.others if row["score_total"] is not None), None)
    if chosen is None or chosen["score_total"] is None or runner_up is None:
        return []
    if chosen["score_total"] == runner_up["score_total"]:
        return [f"Nothing decided between it and {runner_up['node_name']}: the same score."]
    plugin = decisive_plugin(chosen, runner_up)
    rule = _RULES.get(plugin, plugin)
    if plugin == NODE_AFFINITY:
        rule = _NODE_TERMS.get(story.pod["pod_class"], rule)
    return [f"What decided: {rule}."]


def decisive_plugin(chosen: Row, other: Row) -> str:
    """The score that makes most of the difference between two scored nodes; "" without scores."""
    better, worse = chosen["scores"], other["scores"]
    if chosen["score_total"] < other["score_total"]:
        better, worse = worse, better
    leads = {plugin: better.get(plugin, 0) - worse.get(plugin, 0) for plugin in other["scores"]}
    return max(leads, key=lambda plugin: leads[plugin], default="")
