"""The model decides as the real kube-scheduler does: nodes that fit, every number, the pick, the
words, the victims.

`ROOST_SCHEDULER_ROWS` (default 10000) is how many scored nodes are compared at least,
`ROOST_SCHEDULER_SEED` (default 1) where the drawing begins.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.render.manifests import render as render_objects
from generator.values.release_name import Release
from tests.builders import default_values
from tests.e2e.scheduler_clusters import GPU, ZONE
from tests.e2e.scheduler_world import Tally, World
from tests.harness.binaries import MINORS, NEWEST_MINOR
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up
from tests.harness.scheduler import scheduler_config
from tests.stack import render

pytestmark = pytest.mark.e2e

ROWS = int(os.environ.get("ROOST_SCHEDULER_ROWS", "10000"))
FIRST_SEED = int(os.environ.get("ROOST_SCHEDULER_SEED", "1"))
ROWS_OF_OLDER_MINORS = 2500


def profile(name: str, plugins: dict[str, Any], **arguments: dict[str, Any]) -> dict[str, Any]:
    """arguments: of plugins, by their names."""
    config = [{"name": plugin, "args": args} for plugin, args in arguments.items()]
    return {"schedulerName": name, "plugins": plugins, "pluginConfig": config}


def all_profiles(folder: Path) -> dict[str, Any]:
    """Roost's strategies as rendered, kube-scheduler's defaults, and what neither of them uses."""
    defaults = default_values()
    strategies = ("imageFirst", "pack", "spread", "sticky")
    profiles: dict[str, Any] = {name.lower(): {"strategy": name} for name in strategies}
    values: dict[str, Any] = {
        "scheduler": {"profiles": {**dict.fromkeys(defaults["scheduler"]["profiles"]), **profiles}},
        "podClasses": {name: {"profile": "pack"} for name in defaults["podClasses"]},
    }
    documents = render(values, release="hub", namespace="jhub", folder=folder)
    texts = [
        document["data"]["config.yaml"]
        for document in documents
        if document["kind"] == "ConfigMap" and "config.yaml" in document["data"]
    ]
    rendered = yaml.safe_load(texts[0])
    assert len(rendered["profiles"]) == len([*strategies, "pack_strict", "imagefirst_strict"])
    weighed = [{"name": "cpu", "weight": 3}, {"name": "memory"}, {"name": GPU, "weight": 5}]
    three = {"type": "LeastAllocated", "resources": weighed}
    resources = [{"name": "memory", "weight": 2}, {"name": "ephemeral-storage", "weight": 1}]
    most = {"type": "MostAllocated", "resources": resources}
    racks = {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
    zones = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    disabled = [{"name": "TaintToleration"}, {"name": "ImageLocality"}]
    own: list[dict[str, Any]] = [
        {"schedulerName": "kube-defaults"},
        profile(
            "three",
            {
                "score": {
                    "enabled": [
                        {"name": "NodeResourcesFit", "weight": 7},
                        {"name": "TaintToleration"},
                    ]
                }
            },
            NodeResourcesFit={"scoringStrategy": three},
        ),
        profile(
            "arguments",
            {"multiPoint": {"enabled": [{"name": "ImageLocality", "weight": 9}]}},
            PodTopologySpread={"defaultingType": "List", "defaultConstraints": [racks, zones]},
        ),
        profile(
            "most", {"score": {"disabled": disabled}}, NodeResourcesFit={"scoringStrategy": most}
        ),
    ]
    configuration = scheduler_config(*rendered["profiles"], *own)
    # One worker: nodes come in the order of the list. Requests aren't held back.
    return {**configuration, "parallelism": 1, "clientConnection": {"qps": 5000, "burst": 5000}}


def rendered_flags(minor: str) -> list[str]:
    """The feature gates that Roost gives kube-scheduler in a cluster of this minor."""
    bodies: list[Any] = [
        manifest.body
        for manifest in render_objects(default_values(), Release("hub", "jhub", f"v{minor}.0"))
    ]
    specs = [body["spec"]["template"]["spec"] for body in bodies if body["kind"] == "Deployment"]
    commands = [container["command"] for spec in specs for container in spec["containers"]]
    return [flag for command in commands for flag in command if flag.startswith("--feature-gates=")]


def compare(minor: str, rows: int, folder: Path) -> Tally:
    configuration, flags = all_profiles(folder), rendered_flags(minor)
    assert flags
    tally = Tally()
    seed = FIRST_SEED
    while tally.score_rows < rows and not tally.differences:
        with or_give_up(), ControlPlane(minor, controllers=()) as cluster:
            World(cluster, configuration, seed, tally, flags).run()
            cluster.keep_logs = bool(tally.differences)
        seed += 1
    return tally


def report(tally: Tally) -> str:
    head = (
        f"{tally.pods} pods, {tally.score_rows} scored nodes, {tally.rejected_rows} rejections,"
        f" {tally.ties} ties, {tally.unschedulable} unschedulable, {tally.nominations} pre-emptions"
        f" with {tally.victims} victims, {tally.refused_by_api} pods refused by the API server,"
        f" {tally.outrun} outrun by late victims"
    )
    lines = [head, f"points above 0: {dict(tally.plugins)}", f"reasons: {dict(tally.reasons)}"]
    return "\n".join([*lines, *tally.differences[:10]])


def test_the_model_agrees_with_kube_scheduler_number_by_number(tmp_path: Path) -> None:
    tally = compare(NEWEST_MINOR, ROWS, tmp_path)
    print(report(tally))  # noqa: T201 (pytest -s, and beside a failure)
    assert not tally.differences, report(tally)
    assert tally.outrun * 50 <= tally.pods, report(tally)
    if ROWS >= 10_000:
        # Each rule was met, or the agreement says little.
        assert len(tally.plugins) == 7, report(tally)
        assert len(tally.reasons) >= 12, report(tally)
        assert tally.ties, report(tally)
        assert tally.nominations, report(tally)


@pytest.mark.minors
@pytest.mark.parametrize("minor", [minor for minor in MINORS if minor != NEWEST_MINOR])
def test_the_model_agrees_with_older_kube_schedulers_too(minor: str, tmp_path: Path) -> None:
    tally = compare(minor, ROWS_OF_OLDER_MINORS, tmp_path)
    assert not tally.differences, report(tally)
