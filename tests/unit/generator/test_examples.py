"""Values files that come with the chart as examples install as they are, and do what their first line says."""

from pathlib import Path
from typing import Any

import pytest

from generator.locations import chart_folder
from generator.pipeline import report
from generator.render.manifests import render
from generator.values.files import read_values
from generator.values.merge import Settings
from generator.values.release import Release

RELEASE = Release("hub", "jhub", "v1.37.2")
EXAMPLES = sorted((chart_folder() / "examples").glob("*.yaml"))


def bodies(example: str) -> list[Any]:
    path = chart_folder() / "examples" / f"{example}.yaml"
    return [manifest.body for manifest in render(read_values([str(path)]).values, RELEASE)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_no_fault_and_no_warning_and_says_what_it_is(path: Path) -> None:
    merged = read_values(
        [str(path)], Settings(values=("image.name=r.example.org/roost", "recorder.image.name=r.example.org/roost-lab"))
    )
    assert report(merged, RELEASE) == []
    assert path.read_text().startswith("# ")


def test_observe_only_places_nothing_and_runs_one_pod_that_only_reads() -> None:
    rendered = bodies("observe-only")
    assert {body["metadata"]["name"] for body in rendered} == {
        "hub-roost-recorder",
        "hub-roost-release",
        "hub.jhub.roost-recorder",
    }
    workloads = [body for body in rendered if body["kind"] in ("Deployment", "DaemonSet", "StatefulSet", "Job")]
    assert [body["metadata"]["labels"]["app.kubernetes.io/component"] for body in workloads] == ["recorder"]
    assert workloads[0]["spec"].get("replicas", 1) == 1
    assert not [body for body in rendered if "Webhook" in body["kind"] or "Admission" in body["kind"]]
    verbs = {verb for body in rendered for rule in body.get("rules", []) for verb in rule["verbs"]}
    assert verbs == {"list", "watch"}
