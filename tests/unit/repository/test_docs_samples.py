"""Each YAML sample of README.md and docs/ is what it passes for: values that Roost takes, or one of OTHERS."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from generator.locations import chart_folder
from generator.pipeline import make, report
from generator.values.loader import load
from generator.values.merge import merge_values
from generator.values.release import Release
from roost_core.placement.events import Limits, parse_events
from roost_core.placement.settings_reader import Reader

REPOSITORY: Final = Path(__file__).resolve().parents[3]
DEFAULTS: Final = load((chart_folder() / "values.yaml").read_bytes(), "chart/values.yaml")
# First key -> whose file it is. Tests of these: test_import_sample.py, unit/simulator/test_simulator_docs.py.
OTHERS: Final = {
    "jupyterhub": "a hub's values",
    "proxy": "zero-to-jupyterhub's own values",
    "releases": "a helmfile",
    "apiVersion": "an object of Kubernetes",
    "dependencies": "a Chart.yaml",
    "currency": "pools of the simulator",
}


class Sample(NamedTuple):
    """A fenced block."""

    # Path and line.
    place: str
    text: str


def samples() -> list[Sample]:
    found = []
    for path in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("**/*.md"))):
        text = path.read_text(encoding="utf-8")
        for block in re.finditer(r"^```ya?ml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, block.start()) + 2
            found.append(Sample(f"{path.relative_to(REPOSITORY)}:{line}", block[1]))
    return found


def values_of(sample: Sample) -> str | None:
    """The values for Roost's own chart; None if the sample is another file."""
    document = yaml.safe_load(sample.text)
    if document is None:
        # Proposals of `roost import`: comments that hold values below a numbered line each.
        return re.sub(r"^# ?(\d+\. .*\n)?", "", sample.text, flags=re.MULTILINE)
    if next(iter(document)) in OTHERS:
        return None
    # As a dependency of a parent's chart.
    return yaml.safe_dump(document["roost"]) if list(document) == ["roost"] else sample.text


SAMPLES: Final = samples()
VALUES: Final = [Sample(sample.place, text) for sample in SAMPLES if (text := values_of(sample)) is not None]


def test_samples_are_found() -> None:
    assert {sample.place.partition(":")[0] for sample in VALUES} >= {"docs/headroom.md", "docs/install-helm.md"}
    assert len(VALUES) < len(SAMPLES)


@pytest.mark.parametrize("sample", VALUES, ids=lambda sample: sample.place)
def test_a_sample_of_values_has_no_fault_and_no_warning_and_renders(sample: Sample) -> None:
    merged = merge_values(DEFAULTS, [load(sample.text.encode(), sample.place)])
    assert [str(fault) for fault in report(merged, Release()) if fault.severity != "hint"] == []
    manifests, _ = make(merged, Release())
    assert manifests


def test_a_sample_of_booked_events_is_read_whole() -> None:
    texts = [
        text
        for sample in SAMPLES
        for text in (yaml.safe_load(sample.text) or {}).get("data", {}).values()
        if sample.place.startswith("docs/events.md")
    ]
    assert texts
    for text in texts:
        read = Reader()
        entries = yaml.safe_load(text)
        assert len(parse_events(read, entries, "events", Limits(("default",), 500))) == len(entries)
        assert read.faults == []


def test_a_dependency_names_the_charts_version() -> None:
    chart = yaml.safe_load((REPOSITORY / "chart" / "Chart.yaml").read_text(encoding="utf-8"))
    named = [
        entry["version"]
        for sample in SAMPLES
        for entry in (yaml.safe_load(sample.text) or {}).get("dependencies", [])
        if entry["name"] == chart["name"]
    ]
    assert named
    assert set(named) == {chart["version"]}
