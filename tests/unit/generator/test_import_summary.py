"""`roost import` ends in plain words: what Roost will do for this hub, and what not; and in what its lint says."""

from pathlib import Path

import pytest

from roost.__main__ import main
from tests.unit.generator.imported_hubs import imported

USUAL = "scheduling: {userPlaceholder: {replicas: 4}}\nsingleuser: {image: {name: a/b, tag: '1'}}\n"
OFF = """
scheduling: {userScheduler: {enabled: false}, userPlaceholder: {enabled: false}}
prePuller: {hook: {enabled: false}, continuous: {enabled: false}}
"""


def summary(text: str) -> tuple[str, str]:
    """What Roost will do, and what it won't."""
    said = imported(text).summary
    return "\n".join(said.will), "\n".join(said.wont)


def test_a_usual_hub_gets_all_of_it() -> None:
    will, wont = summary(USUAL)
    assert "strategy pack" in will
    assert "also pods that name hub-user-scheduler" in will
    assert "bring 1 image to nodes in advance, by 1 DaemonSet" in will
    assert "keep users off nodes that are still being brought their image" in will
    assert "keep 4 placeholders" in will
    assert "hold an upgrade of the hub up" in wont
    assert "start cold" not in wont


def test_it_says_how_many_puller_pods_a_user_node_gets() -> None:
    profile = "{display_name: g, kubespawner_override: {image: 'a/g:1', extra_resource_limits: {nvidia.com/gpu: 1}%s}}"
    hub = "singleuser: {image: {name: a/b, tag: '1'}, profileList: [%s]}\n"
    everywhere, _ = summary(hub % (profile % ""))
    assert "bring 2 images to nodes in advance, by 2 DaemonSets, up to 2 puller pods on a user node" in everywhere
    apart, _ = summary(hub % (profile % ", node_selector: {gpu: a100}"))
    assert "by 2 DaemonSets\n" in apart


def test_a_hub_that_had_nothing_gets_nothing_unsaid() -> None:
    will, wont = summary(OFF)
    assert "scheduler" not in will
    assert "placeholder" not in will
    assert "the cluster's scheduler goes on doing that" in wont
    assert "bring users together: the hub didn't" in wont
    assert "users of a node that lacks theirs start cold" in wont
    assert "keep placeholders: the hub had none" in wont


def test_a_hub_that_pulled_during_upgrades_only_is_told_of_new_nodes() -> None:
    will, wont = summary(USUAL + "prePuller: {continuous: {enabled: false}}")
    assert "let users prefer nodes that have their image" in will
    assert "users of a node that lacks theirs start cold" in wont


def test_a_hub_without_images_is_told_that_nothing_is_brought() -> None:
    assert "bring images to nodes: none is named" in summary("singleuser: {}")[1]


def test_a_hubs_own_plugins_are_its_own() -> None:
    assert "with the hub's plugins" in summary("scheduling: {userScheduler: {plugins: {score: {disabled: []}}}}")[0]


def test_the_lints_warnings_are_shown_with_the_line_of_what_was_written() -> None:
    result = imported(USUAL)
    assert result.warnings == []
    profiled = imported(
        USUAL.replace("tag: '1'}", "tag: '1'}, profileList: [{kubespawner_override: {image: 'c:1'}}]")
        + "prePuller: {pullProfileListImages: false}"
    )
    (warning,) = profiled.warnings
    assert "imported values:" in str(warning)
    assert "not pulled to any node" in str(warning)
    assert str(warning) in profiled.report()


def test_the_command_says_it_on_stderr_and_takes_a_hubs_key(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "hub.yaml"
    text = "one: {jupyterhub: {singleuser: {}}}\ntwo: {jupyterhub: {singleuser: {}}}\n"
    path.write_text(text)
    assert main(["import", str(path)]) == 1
    assert "found 2 hubs" in capsys.readouterr().err
    assert main(["import", str(path), "--hub", "two.jupyterhub"]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("What Roost will do for this hub:")
    assert len(told.err.splitlines()) == 12
    assert main(["import", str(path), "--hub", "two.jupyterhub", "--details"]) == 0
    assert "What it won't:" in capsys.readouterr().err
    assert told.out.startswith("# Made by `roost import`")
