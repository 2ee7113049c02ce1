"""`roost import` says how users fare: made pods of the hub's values, admitted and placed with what
was imported.
"""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from generator.importing.importer import import_layers
from generator.importing.result import ImportResult
from generator.importing.seating import HUB_LINES
from generator.importing.trial_pods import user_pods
from generator.values.files import read_defaults
from generator.values.merge import coalesce
from roost.__main__ import main
from roost.commands.hub_trial import fare, try_import, world_of
from tests.e2e.spawned import NOWHERE, spawned_pod
from tests.recorded_data import rows

IMAGE = "image: {name: a/b, tag: '1'}"
ROOM = "scheduling: {userPlaceholder: {replicas: 5}}\n"
ALL = "Roost's scheduler, image brought, gate on 1 image"


def tried(text: str) -> ImportResult:
    result = import_layers([("hub.yaml", dedent(text))])
    try_import(result)
    return result


def profiles(*overrides: str) -> str:
    listed = (
        f"{{display_name: {'AB'[at]}, kubespawner_override: {{{one}}}}}"
        for at, one in enumerate(overrides)
    )
    return f"singleuser: {{{IMAGE}, profileList: [{', '.join(listed)}]}}\n"


@pytest.mark.parametrize(("hub", "lines"), rows("commands/hub-users"))
def test_how_users_fare_is_told_by_their_pods(hub: str, lines: list[str]) -> None:
    assert tried(hub).tried == [line.replace("ALL", ALL) for line in lines]


@pytest.mark.parametrize("own", ["hub: {extraConfig: {a: 'c.KubeSpawner.image = f()'}}", ""])
def test_the_hub_s_puller_stays_on_where_only_other_containers_images_are_known(own: str) -> None:
    image = "{name: a.b/c, tag: '1'}" if own else "{tag: '1'}"
    result = tried(
        f"{own}\nsingleuser: {{image: {image}, initContainers: [{{name: i, image: 'a.b/i:1'}}]}}\n"
    )
    assert [line for line in result.keep if line.startswith("prePuller.continuous.enabled: ")]
    assert not [line for line in result.summary.will if "bring" in line]


@pytest.mark.parametrize(("hub", "lines"), rows("commands/hub-users"))
def test_users_of_a_hub_that_seats_people_fare_the_same(hub: str, lines: list[str]) -> None:
    bare = tried(hub)
    assert bare.hub is not None
    service = yaml.safe_load(HUB_LINES)
    for key in reversed(bare.hub.path):
        service = {key: service}
    result = import_layers([("hub.yaml", dedent(hub)), ("seating.yaml", yaml.safe_dump(service))])
    try_import(result)
    assert result.values["seating"] == {"enabled": True}
    assert result.tried == [line.replace("ALL", ALL) for line in lines]


def test_users_whose_class_has_no_profile_are_told_to_give_it_one() -> None:
    hub = import_layers([("hub.yaml", f"singleuser: {{{IMAGE}}}")])
    values: Any = coalesce(hub.values, read_defaults().values)
    (user,) = user_pods(hub, "default")
    assert fare(world_of(values), user).unplaced == ()
    values["podClasses"]["user"]["profile"] = ""
    # It names a scheduler that replaceSchedulers has already.
    assert user.pod["spec"]["schedulerName"] in values["replaceSchedulers"]
    (why,) = fare(world_of(values), user).unplaced
    assert why.condition == "podClasses.user.profile names a profile"


def test_options_multiply_and_pods_do_not() -> None:
    traits = [f"image: 'a/b:{at}'" if at % 2 else f"mem_limit: {at + 1}G" for at in range(8)]
    choices = [
        ", ".join(
            f"c{at}: {{kubespawner_override: {{{one}}}}}" for at, one in enumerate(traits[side::2])
        )
        for side in (0, 1)
    ]
    choices += ["x: {kubespawner_override: {extra_labels: {a: b}}}, y: {}"] * 6
    options = ", ".join(f"o{at}: {{choices: {{{listed}}}}}" for at, listed in enumerate(choices))
    hub = tried(
        f"singleuser: {{profileList: [{{display_name: A, profile_options: {{{options}}}}}]}}"
    )
    pods = user_pods(hub)
    assert len(pods) == 32
    assert {pod.pod["spec"]["containers"][0]["image"] for pod in pods} == {
        f"a/b:{at}" for at in (1, 3, 5, 7)
    }


def test_what_no_pod_shows_is_not_promised() -> None:
    code = 'hub: {extraConfig: {a: "c.KubeSpawner.mem_guarantee = f()"}}'
    hub = tried(f"{ROOM}singleuser: {{{IMAGE}}}\n{code}")
    assert "keep 5 placeholders" not in "".join(hub.summary.will)
    assert any(
        "keep 5 placeholders" in line and "not for these users" in line for line in hub.summary.wont
    )
    assert "keep users off" in "".join(hub.summary.will)


def test_the_hubs_scheduler_stays_on_while_some_pods_have_no_class() -> None:
    hub = tried(profiles("cpu_limit: 1", "namespace: far"))
    (kept,) = hub.keep
    assert kept.startswith(
        "scheduling.userScheduler.enabled: Roost doesn't place all users until"
        " podClasses.user.match"
    )
    assert kept.endswith("namespace: far) of B")
    assert "strategy pack" in "".join(hub.summary.will)
    # All that is in the way, each once.
    both = tried(
        profiles("namespace: far, scheduler_name: mine", "namespace: far, scheduler_name: own")
    ).report()
    head = both.splitlines()[0]
    assert head.startswith(
        "Roost places no users until podClasses.user.match selects their pods (component: singleus"
    )
    assert head.endswith(
        "far) and replaceSchedulers has mine, named by users' pods of A"
        " and replaceSchedulers has own, named by users' pods of B."
    )
    # A pod that names no scheduler has the cluster's, which Roost takes over.
    unnamed = tried(
        profiles("namespace: far, extra_pod_config: {schedulerName: ''}", "cpu_limit: 1")
    )
    assert unnamed.keep[0].endswith("namespace: far) of A")
    every = tried(profiles("namespace: far", "namespace: far"))
    assert every.summary.will[0].startswith(
        "Roost places no users until podClasses.user.match selects their pods"
    )


def test_the_command_says_it_before_what_is_not_mapped(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "hub.yaml").write_text(profiles("image: [x]"))
    assert main(["import", str(tmp_path / "hub.yaml"), "--details"]) == 0
    lines = capsys.readouterr().err.splitlines()
    told = [
        next(text for text in ("switch off", "users: ", "not mapped", "") if text in line)
        for line in lines
    ]
    assert list(filter(None, told))[:3] == ["switch off", "users: ", "not mapped"]


@pytest.mark.parametrize("traits", rows("commands/kubespawner-traits"))
def test_pods_are_as_kubespawner_makes_them(traits: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(NOWHERE)
    theirs = spawned_pod("ada", tmp_path / "kubeconfig", **traits)
    hub = {
        "hub": {"config": {"KubeSpawner": traits}},
        "singleuser": {"memory": {"guarantee": None}},
    }
    hub |= {
        "scheduling": {
            "userPods": {"tolerations": [], "nodeAffinity": {"matchNodePurpose": "ignore"}}
        }
    }
    result = import_layers([("hub.yaml", json.dumps(hub))])
    (ours,) = user_pods(result)
    spec = theirs["spec"]
    assert ours.pod["metadata"]["labels"]["component"] == theirs["metadata"]["labels"]["component"]
    for key in ("nodeSelector", "tolerations"):
        assert ours.pod["spec"][key] == (spec.get(key) or type(ours.pod["spec"][key])())
    assert [one["image"] for one in ours.pod["spec"]["initContainers"]] == [
        one["image"] for one in spec.get("initContainers", [])
    ]
    assert [container["image"] for container in ours.pod["spec"]["containers"]] == [
        container["image"] for container in spec["containers"]
    ]


@pytest.mark.parametrize(("overrides", "lines"), rows("commands/group-overrides"))
@pytest.mark.parametrize("spawner", ["KubeSpawner", "Spawner", "in Python"])
def test_users_of_a_group_fare_by_its_overrides(
    overrides: dict[str, Any], lines: list[str], spawner: str
) -> None:
    config: dict[str, Any] = {"config": {spawner: {"group_overrides": overrides}}}
    if spawner == "in Python":
        config = {"extraConfig": {"a": f"c.Spawner.group_overrides = {overrides!r}"}}
    hub = {
        "hub": config,
        "singleuser": {"image": {"name": "a/b", "tag": "1"}},
        "scheduling": {"userPlaceholder": {"replicas": 3}},
    }
    result = tried(json.dumps(hub))
    assert result.tried == [line.replace("ALL", ALL) for line in lines]
    assert not [note for note in result.unmapped if "group_overrides" in note.key]


def test_a_group_s_override_that_nobody_knows_withdraws_the_promises() -> None:
    code = "c.Spawner.group_overrides = choose()"
    result = tried(f"{ROOM}singleuser: {{{IMAGE}}}\nhub: {{extraConfig: {{a: {code!r}}}}}")
    assert result.summary.promises == {"place"}
    assert "isn't known" in result.report(details=False)
