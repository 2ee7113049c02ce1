"""`roost import` ends in what would help the hub most, as values that can be laid over the imported
ones.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.importing.importer import import_layers
from generator.importing.profile_pools import LEARN
from generator.importing.proposals import Proposal, print_proposals, propose
from generator.pipeline import find_faults
from generator.render.functions import placeholder_sets
from generator.render.managed_images import profile_seats
from generator.values.loader import load
from generator.values.lookups import child
from generator.values.merge import merge_values
from generator.values.release_name import Release
from roost.__main__ import main
from tests.builders import CHART_VALUES
from tests.recorded_data import printed, rows
from tests.unit.generator.imported_hubs import hub, imported, merged

INERT = "Nothing changes for users with these values."
OFF = """
scheduling: {userScheduler: {enabled: false}, userPlaceholder: {enabled: false}}
prePuller: {hook: {enabled: false}, continuous: {enabled: false}}
singleuser: {memory: {guarantee: 2G}, image: {name: a/b, tag: "1"}}
"""
BINDER = (
    "jupyterhub: {scheduling: {userScheduler: {enabled: false}}}\nconfig: {BinderHub:"
    " {use_registry: true}}\n"
)


def proposed(text: str) -> list[Proposal]:
    """The proposals; with each of them, and with all, the imported values are valid."""
    layers = [("hub.yaml", text)]
    result = import_layers(layers, "hub")
    found = propose(result, layers, "hub")
    imported = load(result.to_yaml().encode(), "imported.yaml")
    over = [load(yaml.safe_dump(dict(one.values)).encode(), "more.yaml") for one in found]
    for chosen in (*([one] for one in over), over):
        whole = merge_values(CHART_VALUES, [imported, *chosen])
        faults = find_faults(whole, Release())
        assert [str(fault) for fault in faults if fault.severity == "error"] == []
    return found


def values_of(proposals: list[Proposal], dotted: str) -> list[Any]:
    """What each proposal that names the key says there."""
    return [
        got
        for proposal in proposals
        if (got := child(proposal.values, *dotted.split("."))) is not None
    ]


def test_a_hub_with_everything_off_is_proposed_puller_then_placeholders_then_scheduler() -> None:
    found = proposed(OFF)
    assert len(found) == 3
    assert found[0].values == {
        "prePuller": {"enabled": True},
        "imageGate": {"mode": "requireLabel"},
    }
    (entry,) = values_of(found[1:2], "placeholders")[0]
    assert entry["replicas"] == 3
    assert entry["resources"]["requests"]["memory"] == "2Gi", "as large as the hub's users"
    assert found[2].values["scheduler"] == {"target": "deploy"}
    assert values_of(found, "podClasses.user.warm") == [
        child(CHART_VALUES.values, "podClasses", "user", "warm")
    ]
    assert values_of(found, "replaceSchedulers") == []


def test_images_that_are_pushed_nowhere_are_not_proposed_to_be_brought() -> None:
    without_registry = BINDER.replace("use_registry: true", "use_registry: false")
    assert values_of(proposed(BINDER), "popularImages") == [{"enabled": True}]
    assert values_of(proposed(without_registry), "popularImages") == []


def test_a_binderhub_is_proposed_the_warm_set_first_and_no_puller() -> None:
    found = proposed(BINDER)
    assert [sorted(one.values) for one in found] == [
        ["podClasses", "scheduler"],
        ["placeholders"],
        ["popularImages"],
    ]


@pytest.mark.parametrize(("text", "keys"), rows("generator/proposals"))
def test_what_a_hub_has_is_not_proposed(text: str, keys: list[str]) -> None:
    assert [key for one in proposed(text) for key in one.values] == keys


@pytest.mark.parametrize(("devices", "are_proposed"), [(0, True), (1, False)])
def test_placeholders_that_cost_a_device_each_are_not_proposed(
    devices: int, are_proposed: bool
) -> None:
    amounts = f"{{nvidia.com/gpu: {devices}}}"
    own = f"{{enabled: false, resources: {{requests: {amounts}, limits: {amounts}}}}}"
    found = proposed(OFF.replace("userPlaceholder: {enabled: false}", f"userPlaceholder: {own}"))
    assert bool(values_of(found, "placeholders")) == are_proposed


def test_a_hub_that_is_a_dependency_of_a_chart_is_found() -> None:
    assert len(proposed("basehub: {jupyterhub: {" + OFF.strip().replace("\n", ", ") + "}}")) == 3


def test_the_comments_hold_each_proposal_as_values_and_the_file_reads_as_without_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hub.yaml").write_text(OFF)
    assert main(["import", str(tmp_path / "hub.yaml")]) == 0
    said = capsys.readouterr().out
    values, head, below = said.partition("# What would help this hub most")
    assert head
    assert yaml.safe_load(said) == yaml.safe_load(values)
    lines = [line.removeprefix("#").removeprefix(" ") for line in below.splitlines()]
    blocks = "\n".join(lines).split("\n\n")[1:]
    shown = [yaml.safe_load("\n".join(block.splitlines()[1:])) for block in blocks]
    assert shown == [one.values for one in proposed(OFF)]


def test_pools_of_profiles_get_placeholders_as_large_as_their_users_beside_the_hubs_own() -> None:
    (found,) = proposed(hub("pools") + "prePuller: {continuous: {enabled: true}}")
    default, large, *gpus = values_of([found], "placeholders")[0]
    assert (default["name"], default["replicas"]) == ("default", 2)
    assert large == {
        "name": "large-memory",
        "replicas": 1,
        "learn": {**LEARN, "max": 6},
        "resources": {"requests": {"cpu": "3500m", "memory": "28Gi"}, "limits": {"memory": "30Gi"}},
        "nodeSelector": {"zone": "a", "pool": "highmem"},
    }
    assert [(one["name"], one["replicas"], one["prices"]["nodeHour"]) for one in gpus] == [
        ("gpu-a100", 0, 3),
        ("gpu-t4", 0, 3),
    ]
    assert [one["learn"] for one in gpus] == [{**LEARN, "max": 3}] * 2
    expected = {
        "requests": {"memory": "2Gi", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    assert gpus[0]["resources"] == expected
    assert gpus[0]["nodeSelector"] == {"zone": "a", "kind": "a100"}
    assert gpus[0]["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    large_said, gpu_said, _ = found.comments
    assert large_said.endswith("Large memory, the first of 2 kinds of users there.")
    assert "0 replicas: each would cost a node with nvidia.com/gpu. Before a course" in gpu_said


def test_a_booking_for_a_profile_gets_its_pools_set_and_the_image_of_its_default_choices() -> None:
    text = hub("pools").replace("x: {kube", "x: {default: true, kube")
    (pools,) = proposed(text)
    values: Any = merged(imported(text)).values
    usual = values["placeholder"]["defaults"]
    sets = placeholder_sets("hub", pools.values["placeholders"], usual)
    seats: Any = profile_seats(values["singleuser"], usual, sets)
    assert [(*seat["names"], seat["image"], seat["set"]) for seat in seats] == rows(
        "generator/profile-seats"
    )


def test_pools_come_last_and_stand_beside_the_default_set_that_is_proposed() -> None:
    pool = "{display_name: Big, kubespawner_override: {node_selector: {kind: big}}}"
    hub = OFF.replace(
        "singleuser: {", f"singleuser: {{profileList: [{{display_name: CPU}}, {pool}], "
    )
    first, last = values_of(proposed(hub), "placeholders")
    assert last[:1] == first
    assert [(one["name"], one["replicas"]) for one in last[1:]] == [("big", 1)]
    # A seat on a GPU is a node: none stands, but before a weekly course some are learned.
    *_, gpus = values_of(proposed(hub.replace("kind: big", "gpu: big")), "placeholders")
    assert [(one["name"], one["replicas"]) for one in gpus[1:]] == [("big", 0)]
    assert (gpus[1]["learn"], gpus[1]["prices"]["nodeHour"]) == ({**LEARN, "max": 3}, 3)


@pytest.mark.parametrize("profile", rows("generator/profiles-without-pools"))
def test_what_leads_to_no_pool_of_its_own_is_proposed_nothing(profile: str) -> None:
    image = "image: {name: a/b, tag: '1'}"
    hub = (
        f"singleuser: {{{image}, profileList: [{profile}]}}\nscheduling: {{userPlaceholder:"
        " {replicas: 1}}"
    )
    assert proposed(hub) == []


def test_sets_of_pools_have_names_of_their_own() -> None:
    profiles = ", ".join(
        f"{{display_name: {name!r}, kubespawner_override: {{node_selector: {{pool: {pool}}}}}}}"
        for name, pool in (
            ("Default", "a"),
            ("default!", "b"),
            ("Große Daten", "c"),
            ("日本", "d"),
            ("x" * 99, "e"),
        )
    )
    text = (
        f"singleuser: {{profileList: [{{}}, {profiles}]}}\nscheduling: {{userPlaceholder:"
        " {replicas: 1}}"
    )
    (entries,) = values_of(proposed(text), "placeholders")
    assert [entry["name"] for entry in entries] == [
        *("default", "default-2", "default-3", "gro-e-daten", "pool", "x" * 40)
    ]


def test_a_proposal_of_pools_is_printed_with_its_reasons_which_stay_comments() -> None:
    (found,) = proposed(hub("pools"))
    text = print_proposals([found])
    assert text == printed("proposals-of-pools")
    values = "\n".join(
        line.removeprefix("#").removeprefix(" ") for line in text.splitlines()
    ).split("1. Keep")[1]
    assert yaml.safe_load(values.partition("\n")[2]) == found.values
    over = merge_values(
        CHART_VALUES, [load(yaml.safe_dump(dict(found.values)).encode(), "more.yaml")]
    )
    assert [str(fault) for fault in find_faults(over, Release()) if fault.severity != "hint"] == []


def test_nothing_is_printed_where_nothing_is_missing() -> None:
    assert print_proposals([]) == ""


def test_the_report_of_an_inert_import_says_that_nothing_changes_and_where_the_proposals_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hub.yaml").write_text(OFF)
    assert main(["import", str(tmp_path / "hub.yaml")]) == 0
    said = capsys.readouterr().err.partition(INERT)[2]
    assert "chart/examples/observe-only.yaml" in said
    below = said.partition("What would help this hub most stands below the values, as comments:\n")[
        2
    ].splitlines()
    assert [line.split(".")[0].strip() for line in below[:3]] == ["1", "2", "3"]
    assert "Bring the users' images" in below[0]


def test_the_report_of_other_imports_names_the_proposals_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hub.yaml").write_text("singleuser: {image: {name: a/b, tag: '1'}}\n")
    assert main(["import", str(tmp_path / "hub.yaml")]) == 0
    said = capsys.readouterr().err
    assert "Nothing changes" not in said
    assert (
        "What would help this hub most stands below the values, as comments:\n  1. Keep room"
        in said
    )


def test_one_thing_that_users_notice_is_enough_not_to_be_inert() -> None:
    for on in (
        "prePuller: {hook: {enabled: true}}",
        "scheduling: {userPlaceholder: {enabled: true, replicas: 1}}",
    ):
        key = on.partition(":")[0]
        text = "\n".join(
            [on, *(line for line in OFF.strip().splitlines() if not line.startswith(key))]
        )
        assert INERT not in import_layers([("hub.yaml", text)], "hub").summary.verdict, on
    assert INERT in import_layers([("hub.yaml", OFF)], "hub").summary.verdict
    binder = import_layers(
        [("hub.yaml", "binderhub: {config: {BinderHub: {}}, jupyterhub: {}}\n")], "hub"
    )
    off = import_layers([("hub.yaml", f"{OFF}\nbinderhub-service: {{}}")], "hub")
    assert INERT not in binder.summary.verdict
    # Builds go elsewhere, under a heading of their own.
    expected = [
        "What Roost will do for this hub:",
        "  - send builds of a repository to one node, where its layers are",
    ]
    assert off.summary.will[-2:] == expected
