"""What comes with the chart: examples that install as they are, values that stay few, a table with
each check.
"""

import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator import checks
from generator.package_data import chart_folder
from generator.pipeline import find_faults
from generator.render.manifests import render
from generator.values.files import read_values
from generator.values.merge import SetOptions
from tests.builders import HUB_RELEASE

EXAMPLES = sorted((chart_folder() / "examples").glob("*.yaml"))


def bodies(example: str) -> list[Any]:
    path = chart_folder() / "examples" / f"{example}.yaml"
    return [manifest.body for manifest in render(read_values([str(path)]).values, HUB_RELEASE)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_no_fault_and_no_warning_and_says_what_it_is(path: Path) -> None:
    merged = read_values(
        [str(path)],
        SetOptions(
            values=("image.name=r.example.org/roost", "recorder.image.name=r.example.org/roost-lab")
        ),
    )
    assert find_faults(merged, HUB_RELEASE, with_hints=True) == []
    assert path.read_text().startswith("# ")


def test_observe_only_places_nothing_and_runs_one_pod_that_only_reads() -> None:
    rendered = bodies("observe-only")
    expected = {"hub-roost-recorder", "hub-roost-release", "hub.jhub.roost-recorder"}
    assert {body["metadata"]["name"] for body in rendered} == expected
    workloads = [
        body
        for body in rendered
        if body["kind"] in ("Deployment", "DaemonSet", "StatefulSet", "Job")
    ]
    assert [body["metadata"]["labels"]["app.kubernetes.io/component"] for body in workloads] == [
        "recorder"
    ]
    assert workloads[0]["spec"].get("replicas", 1) == 1
    assert not [
        body for body in rendered if "Webhook" in body["kind"] or "Admission" in body["kind"]
    ]
    verbs = {verb for body in rendered for rule in body.get("rules", []) for verb in rule["verbs"]}
    assert verbs == {"list", "watch", "get"}


def count_leaves(value: object) -> int:
    """Keys that hold no map of keys; a list counts once."""
    return sum(map(count_leaves, value.values())) if isinstance(value, dict) and value else 1


def test_the_values_begin_with_what_an_operator_sets_and_stay_few_and_narrow() -> None:
    text = (chart_folder() / "values.yaml").read_text()
    values = yaml.safe_load(text)
    first = (
        "image imageRegistry singleuser placeholders imageGate prePuller scheduler sharedPools"
        " recorder monitoring"
    )
    assert list(values)[:11] == [*first.split(), "webhook"]
    chosen = {
        "imageGate": "mode",
        "prePuller": "enabled",
        "scheduler": "target",
        "webhook": "failurePolicy",
    }
    assert {group: next(iter(values[group])) for group in chosen} == chosen
    assert count_leaves(values) <= 170
    assert [line for line in text.splitlines() if len(line) > 100] == []


HELPERS = {"contract", "faulty_keys", "tolerations_and_terms"}


def test_the_table_has_the_check_of_every_file() -> None:
    files = {module.name for module in pkgutil.iter_modules(checks.__path__)} - HELPERS
    assert {import_module(f"generator.checks.{name}").check for name in files} == {
        *checks.CHECKS,
        *checks.HINTS,
    }
    assert len(files) == len(checks.CHECKS + checks.HINTS)
