"""The page on rights names what the rendered rights let each account do."""

from typing import Any

from generator.render.manifests import render
from generator.values.release_name import Release
from tests.builders import default_values, merged
from tools.root import ROOT

PAGE = ROOT / "docs/rights.md"
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


def rights_on_the_page(account: str) -> str:
    """The account's section, and its rows of what is off by default."""
    page = PAGE.read_text()
    section = page.partition(f"## The {account}\n")[2].partition("\n## ")[0]
    by_choice = page.partition("## Off by default\n")[2].splitlines()
    rows = [row.split(" | ")[1] for row in by_choice if row.startswith(f"| {account} |")]
    return "\n".join([section, *rows]).lower()


def test_the_page_on_rights_names_each_right_that_is_rendered() -> None:
    seen = set()
    for manifest in render(merged(default_values(), MORE), Release("hub", "jhub")):
        body: dict[str, Any] = manifest.body
        # The controllers have two Roles.
        account = manifest.identity.name.removesuffix("-pods").rpartition("-")[2]
        for rule in body["rules"] if manifest.identity.kind in ("Role", "ClusterRole") else ():
            # The page sums up what controllers and scheduler read.
            if account in ("webhook", "recorder") or not READS.issuperset(rule["verbs"]):
                seen.add(account)
                words = {
                    WORDS.get(resource, resource.rpartition("/")[0] or resource).removesuffix("s")
                    for resource in rule["resources"]
                }
                named = rights_on_the_page(account)
                assert [word for word in words if word.lower() not in named] == [], (account, rule)
    assert seen >= {"webhook", "controllers", "scheduler", "recorder"}
