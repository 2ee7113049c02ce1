"""Whose failed pull counts, as docs/beliefs.md says: by the pull policy, against what the node
shows.
"""

import re
from typing import NamedTuple, cast

import pytest

from tools.root import ROOT
from webhook.facts.placed_pod import PlacedPod
from webhook.facts.warm import WarmFacts
from webhook.watching.nodes import WatchedNodes
from webhook.watching.pull_evidence import PullEvidence

IMAGE = "docker.io/library/x:1"
NODE = "n1"
SECTION = (ROOT / "docs" / "beliefs.md").read_text(encoding="utf-8")
SECTION = SECTION.partition("### Whose failed pull counts\n")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| (.+?) \| (no|counts) \| (no|counts) \|$", SECTION, re.MULTILINE)


class ListedImages(NamedTuple):
    """What is known of the node's own list."""

    has_it: bool = False
    may_hold_more: bool = False

    def as_nodes(self) -> WatchedNodes:
        return cast("WatchedNodes", _Nodes(self))


class _Nodes:
    def __init__(self, listed: ListedImages) -> None:
        self._listed = listed

    def lists(self, node: str, image: str) -> bool:
        assert (node, image) == (NODE, IMAGE)
        return self._listed.has_it

    def may_hold_more(self, node: str) -> bool:
        assert node == NODE
        return self._listed.may_hold_more


RUNNING = {"a": PlacedPod("user", NODE, (IMAGE,))}
HAS_RUN = WarmFacts(RUNNING).updated({"a": None})
# In the order of the table's rows: each way in which the node may show it.
SHOWN: list[list[tuple[ListedImages, WarmFacts]]] = [
    [(ListedImages(has_it=True), WarmFacts()), (ListedImages(), WarmFacts(RUNNING))],
    [(ListedImages(), WarmFacts())],
    [(ListedImages(), HAS_RUN)],
    [(ListedImages(may_hold_more=True), WarmFacts())],
]


def test_the_table_has_a_row_for_each() -> None:
    assert len(ROWS) == len(SHOWN)


@pytest.mark.parametrize(("row", "shown"), [*zip(ROWS, SHOWN, strict=False)])
def test_a_failed_pull_counts_as_the_table_says(
    row: tuple[str, str, str], shown: list[tuple[ListedImages, WarmFacts]]
) -> None:
    for listed, warm in shown:
        for always, counts in (((), row[1]), ((IMAGE,), row[2])):
            pod = PlacedPod("user", NODE, (), True, (IMAGE,), always)
            evidence = PullEvidence({"user": warm}, "user", {"b": pod}, listed.as_nodes())
            assert evidence.excuses_failure(pod, IMAGE) == (counts == "no"), (row, always)
