"""`roost import` ends in what would help the hub most, as values that can be laid over the imported ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from generator.checks.lint import lint
from generator.checks.schema import find_faults
from generator.importing.importer import import_layers
from generator.importing.proposals import print_proposals, propose
from generator.importing.source import child
from generator.values.loader import load
from generator.values.merge import merge_values
from generator.values.release import Release
from roost.__main__ import main
from tests.unit.generator.imported_hubs import defaults

if TYPE_CHECKING:
    from pathlib import Path

    from generator.importing.proposals import Proposal

OFF = """
scheduling: {userScheduler: {enabled: false}, userPlaceholder: {enabled: false}}
prePuller: {hook: {enabled: false}, continuous: {enabled: false}}
singleuser: {memory: {guarantee: 2G}, image: {name: a/b, tag: "1"}}
"""
BINDER = "jupyterhub: {scheduling: {userScheduler: {enabled: false}}}\nconfig: {BinderHub: {use_registry: true}}\n"


def proposed(text: str, release: str = "hub") -> list[Proposal]:
    """The proposals; with each of them, and with all, the imported values are valid."""
    layers = [("hub.yaml", text)]
    result = import_layers(layers, release)
    found = propose(result, layers, release)
    imported = load(result.to_yaml().encode(), "imported.yaml")
    over = [load(yaml.safe_dump(dict(one.values)).encode(), "more.yaml") for one in found]
    for chosen in (*([one] for one in over), over):
        whole = merge_values(defaults(), [imported, *chosen])
        faults = find_faults(whole) or lint(whole, Release())
        assert [str(fault) for fault in faults if fault.severity == "error"] == []
    return found


def values_of(proposals: list[Proposal], dotted: str) -> list[Any]:
    """What each proposal that names the key says there."""
    return [got for one in proposals if (got := child(one.values, *dotted.split("."))) is not None]


def test_a_hub_with_everything_off_is_proposed_puller_placeholders_and_scheduler_in_this_order() -> None:
    found = proposed(OFF)
    assert len(found) == 3
    assert found[0].values == {"prePuller": {"enabled": True}, "imageGate": {"mode": "requireLabel"}}
    (entry,) = values_of(found[1:2], "placeholders")[0]
    assert entry["replicas"] == 3
    assert entry["resources"]["requests"]["memory"] == "2Gi", "as large as the hub's users"
    assert found[2].values["scheduler"] == {"target": "deploy"}
    assert values_of(found, "podClasses.user.warm") == [child(defaults().values, "podClasses", "user", "warm")]
    assert values_of(found, "replaceSchedulers") == []


def test_a_binderhub_is_proposed_the_warm_set_first_and_no_puller() -> None:
    found = proposed(BINDER)
    assert [sorted(one.values) for one in found] == [["podClasses", "scheduler"], ["placeholders"], ["popularImages"]]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("singleuser: {image: {name: a/b, tag: '1'}}\nscheduling: {userPlaceholder: {replicas: 4}}", []),
        ("singleuser: {image: {name: a/b, tag: '1'}}", ["placeholders"]),
        ("scheduling: {userPlaceholder: 7}\nsingleuser: {image: {name: a/b, tag: '1'}}", ["placeholders"]),
        ("config: {BinderHub: {use_registry: true}}", ["placeholders", "popularImages"]),
    ],
    ids=["all on", "the chart's defaults", "odd values", "a BinderHub's defaults"],
)
def test_what_a_hub_has_is_not_proposed(text: str, keys: list[str]) -> None:
    assert [key for one in proposed(text) for key in one.values] == keys


def test_a_hub_that_is_a_dependency_of_a_chart_is_found() -> None:
    assert len(proposed("basehub: {jupyterhub: {" + OFF.strip().replace("\n", ", ") + "}}")) == 3


def test_the_comments_hold_each_proposal_as_values_and_the_file_reads_as_without_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hub.yaml").write_text(OFF)
    assert main(["import", str(tmp_path / "hub.yaml")]) == 0
    printed = capsys.readouterr().out
    values, head, below = printed.partition("# What would help this hub most")
    assert head
    assert yaml.safe_load(printed) == yaml.safe_load(values)
    lines = [line.removeprefix("#").removeprefix(" ") for line in below.splitlines()]
    blocks = "\n".join(lines).split("\n\n")[1:]
    shown = [yaml.safe_load("\n".join(block.splitlines()[1:])) for block in blocks]
    assert shown == [one.values for one in proposed(OFF)]


def test_nothing_is_printed_where_nothing_is_missing() -> None:
    assert print_proposals([]) == ""
