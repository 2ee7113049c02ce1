"""The threat model says what the rendered rights let a stolen token do."""

from typing import Any

from generator.render.manifests import render
from generator.values.release_name import Release
from tests.builders import default_values, merged
from tools.root import ROOT

PAGE = ROOT / "docs/threat-model.md"
READS = {"get", "list", "watch"}
# Features that give rights, all off by default.
MORE: dict[str, Any] = {
    "popularImages": {"enabled": True},
    "events": {"enabled": True},
    "recorder": {"enabled": True},
}
# What the page calls by what it is for.
WORDS = {
    "mutatingwebhookconfigurations": "caBundle",
    "pods/eviction": "evict",
    "statefulsets/scale": "placeholders",
}


def test_the_threat_model_names_each_right_that_is_rendered() -> None:
    table = PAGE.read_text().partition("## A stolen token")[2].partition("###")[0]
    rows = [line.split(" | ") for line in table.splitlines()]
    may = {row[0].strip("| ").split(" ")[0]: row[1].lower() for row in rows if len(row) > 1}
    for manifest in render(merged(default_values(), MORE), Release("hub", "jhub")):
        body: dict[str, Any] = manifest.body
        # The controllers have two Roles.
        account = manifest.identity.name.removesuffix("-pods").rpartition("-")[2]
        for rule in body["rules"] if manifest.identity.kind in ("Role", "ClusterRole") else ():
            # What controllers and scheduler read has a table of its own.
            if account in ("webhook", "recorder") or not READS.issuperset(rule["verbs"]):
                words = {
                    WORDS.get(resource, resource.rpartition("/")[0] or resource).removesuffix("s")
                    for resource in rule["resources"]
                }
                assert [word for word in words if word.lower() not in may[account]] == [], (
                    account,
                    rule,
                )
