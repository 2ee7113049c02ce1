"""`roost import` says how users fare: made pods of the hub's values, admitted and placed with what was imported."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from generator.importing.importer import import_layers
from generator.importing.result import ImportResult
from generator.importing.user_pods import user_pods
from roost.__main__ import main
from roost.commands.hub_trial import try_import
from tests.e2e.spawned import NOWHERE, spawned_pod

NO_SCHEDULER = "scheduling: {userScheduler: {enabled: false}}\n"
IMAGE = "image: {name: a/b, tag: '1'}"
ROOM = "scheduling: {userPlaceholder: {replicas: 5}}\n"
GPU = "{key: gpu, operator: Exists, effect: NoSchedule}"
ALL = "Roost's scheduler, image brought, gate on 1 image"


def tried(text: str) -> ImportResult:
    result = import_layers([("hub.yaml", dedent(text))])
    try_import(result)
    return result


def profiles(*overrides: str) -> str:
    listed = (f"{{display_name: {'AB'[at]}, kubespawner_override: {{{one}}}}}" for at, one in enumerate(overrides))
    return f"singleuser: {{{IMAGE}, profileList: [{', '.join(listed)}]}}\n"


@pytest.mark.parametrize(
    ("hub", "lines"),
    [
        (f"singleuser: {{{IMAGE}}}", [f"users: {ALL}"]),
        (ROOM + f"singleuser: {{{IMAGE}}}", [f"users: {ALL}, 5 placeholders fit"]),
        # Another pool, a taint, a larger size, a device: no placeholder keeps room there.
        *(
            (
                ROOM + profiles("node_selector: {pool: a}", other),
                [f"users of A: {ALL}, 5 placeholders fit", f"users of B: {ALL}, no placeholder fits"],
            )
            for other in (
                "node_selector: {pool: b}",
                "cpu_limit: 1",
                f"node_selector: {{pool: a}}, tolerations: [{GPU}]",
                "node_selector: {pool: a}, mem_guarantee: 2G",
                "node_selector: {pool: a}, extra_resource_limits: {example.org/gpu: '1'}",
                "node_selector: {pool: a, zone: null, disk: ssd}, mem_limit: 8G, cpu_guarantee: 1",
                "extra_pod_config: {nodeSelector: {pool: b}}",
            )
        ),
        (
            profiles("cpu_limit: 1", "scheduler_name: mine"),
            [f"users of A: {ALL}", "users of B: the scheduler mine, image brought, gate on 1 image"],
        ),
        # A pod of another namespace has no class, and nothing is done for it.
        (
            profiles("cpu_limit: 1", "namespace: far"),
            [f"users of A: {ALL}", "users of B: the scheduler hub-user-scheduler, image brought"],
        ),
        # Whoever could have pods of lower priority deleted isn't held back.
        (
            f"scheduling: {{podPriority: {{enabled: true, defaultPriority: 7}}}}\nsingleuser: {{{IMAGE}}}",
            ["users: Roost's scheduler, image brought, prefer nodes with their image"],
        ),
        ("singleuser: {memory: {guarantee: 1G}}", ["users: Roost's scheduler"]),
        ("singleuser: {image: {tag: '1'}, initContainers: [{name: i, image: 'c:1'}]}",
         ["users: Roost's scheduler, image not named here, gate on 1 image"]),
        (
            f"prePuller: {{continuous: {{enabled: false}}}}\n{NO_SCHEDULER}singleuser: {{{IMAGE}}}",
            ["users: the cluster's scheduler, prefer nodes with their image"],
        ),
        (
            """
            singleuser:
              profileList:
                - display_name: A
                  profile_options:
                    image:
                      choices:
                        one: {kubespawner_override: {image: 'c:1'}}
                        two: {kubespawner_override: {image: 'c:2'}}
                      unlisted_choice: {enabled: true, kubespawner_override: {image: '{value}'}}
                    pool:
                      choices: {x: {kubespawner_override: {node_selector: {pool: x}}}, y: {}}
                - {display_name: B, kubespawner_override: {image: 'c:3'}}
            """,
            [f"users of one, two, B: {ALL}", "users of an image of their own: Roost's scheduler, image not brought"],
        ),
        ("binderhub: {config: {BinderHub: {}}, jupyterhub: {scheduling: {userScheduler: {enabled: true}}}}",
         ["users: Roost's scheduler"]),
    ],
)  # fmt: skip
def test_how_users_fare_is_told_by_their_pods(hub: str, lines: list[str]) -> None:
    assert tried(hub).tried == lines


def test_options_multiply_and_pods_do_not() -> None:
    traits = [f"image: 'a/b:{at}'" if at % 2 else f"mem_limit: {at + 1}G" for at in range(8)]
    choices = [", ".join(f"c{at}: {{kubespawner_override: {{{one}}}}}" for at, one in enumerate(traits[side::2]))
               for side in (0, 1)]  # fmt: skip
    choices += ["x: {kubespawner_override: {extra_labels: {a: b}}}, y: {}"] * 6
    options = ", ".join(f"o{at}: {{choices: {{{listed}}}}}" for at, listed in enumerate(choices))
    hub = tried(f"singleuser: {{profileList: [{{display_name: A, profile_options: {{{options}}}}}]}}")
    pods = user_pods(hub)
    assert len(pods) == 32
    assert {pod.pod["spec"]["containers"][0]["image"] for pod in pods} == {f"a/b:{at}" for at in (1, 3, 5, 7)}


def test_what_no_pod_shows_is_not_promised() -> None:
    hub = tried(ROOM + f"singleuser: {{{IMAGE}}}\nhub: {{config: {{KubeSpawner: {{mem_guarantee: 64G}}}}}}")
    assert "keep 5 placeholders" not in "".join(hub.summary.will)
    assert any("keep 5 placeholders" in line and "not for these users" in line for line in hub.summary.wont)
    assert "keep users off" in "".join(hub.summary.will)


def test_the_hubs_scheduler_stays_on_while_some_pods_have_no_class() -> None:
    hub = tried(profiles("cpu_limit: 1", "namespace: far"))
    (kept,) = hub.keep
    assert kept.startswith(
        "scheduling.userScheduler.enabled: Roost doesn't place all users until podClasses.user.match"
    )
    assert kept.endswith("namespace: far) of B")
    assert "strategy pack" in "".join(hub.summary.will)
    # All that is in the way, each once.
    both = tried(profiles("namespace: far, scheduler_name: mine", "namespace: far, scheduler_name: own")).report()
    head = both.splitlines()[0]
    assert head.startswith("Roost places no users until podClasses.user.match selects their pods (component: singleus")
    assert head.endswith(
        "far) and replaceSchedulers has mine, named by users' pods of A"
        " and replaceSchedulers has own, named by users' pods of B."
    )
    every = tried(profiles("namespace: far", "namespace: far"))
    assert every.summary.will[0].startswith("Roost places no users until podClasses.user.match selects their pods")


def test_the_command_says_it_before_what_is_not_mapped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "hub.yaml").write_text(profiles("image: [x]"))
    assert main(["import", str(tmp_path / "hub.yaml"), "--details"]) == 0
    lines = capsys.readouterr().err.splitlines()
    told = [next(text for text in ("switch off", "users: ", "not mapped", "") if text in line) for line in lines]
    assert list(filter(None, told))[:3] == ["switch off", "users: ", "not mapped"]


@pytest.mark.parametrize(
    "traits",
    [
        {"image": "a/b:1", "mem_guarantee": "1G", "cpu_limit": 0.5, "node_selector": {"pool": "a"}},
        {"image": "a/b:1", "component_label": "lab", "extra_labels": {"component": "other", "course": "x"}},
        {
            "image": "a/b:1",
            "node_selector": {"pool": "a"},
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "extra_pod_config": {"nodeSelector": {"pool": "b"}, "tolerations": [], "schedulerName": "mine"},
        },
        {
            "image": "a/b:1",
            "init_containers": [{"name": "i", "image": "c:1"}],
            "extra_containers": [{"name": "e", "image": "c:2"}],
            "extra_resource_limits": {"nvidia.com/gpu": "1"},
            "node_affinity_required": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}],
            "scheduler_name": "mine",
        },
    ],
)
def test_pods_are_as_kubespawner_makes_them(traits: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(NOWHERE)
    theirs = spawned_pod("ada", tmp_path / "kubeconfig", **traits)
    hub = {"hub": {"config": {"KubeSpawner": traits}}, "singleuser": {"memory": {"guarantee": None}}}
    hub |= {"scheduling": {"userPods": {"tolerations": [], "nodeAffinity": {"matchNodePurpose": "ignore"}}}}
    result = import_layers([("hub.yaml", json.dumps(hub))])
    (ours,) = user_pods(result)
    spec = theirs["spec"]
    assert ours.pod["metadata"]["labels"]["component"] == theirs["metadata"]["labels"]["component"]
    for key in ("nodeSelector", "tolerations"):
        assert ours.pod["spec"][key] == (spec.get(key) or type(ours.pod["spec"][key])())
    assert [one["image"] for one in ours.pod["spec"]["initContainers"]] == [
        one["image"] for one in spec.get("initContainers", [])
    ]
    assert [one["image"] for one in ours.pod["spec"]["containers"]] == [one["image"] for one in spec["containers"]]
