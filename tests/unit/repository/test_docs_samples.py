"""Each YAML sample of the documentation is what it passes for: values that Roost takes, or one of OTHERS or KINDS."""

import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from generator.importing.importer import import_layers
from generator.locations import chart_folder
from generator.pipeline import make, report
from generator.values.loader import load
from generator.values.merge import merge_values
from generator.values.release import Release
from roost_core.release.events import Limits, parse_events
from roost_core.release.reader import Reader

REPOSITORY: Final = Path(__file__).resolve().parents[3]
DEFAULTS: Final = load((chart_folder() / "values.yaml").read_bytes(), "chart/values.yaml")
# First key -> whose file it is, and what checks it.
HUBS: Final = frozenset({"jupyterhub", "proxy"})  # values of zero-to-jupyterhub's: below, and test_import_sample.py
OTHERS: Final = {
    "hub": "lines for a hub's own values: unit/generator/test_import_spawn_page.py",
    "releases": "a helmfile",
    "dependencies": "a Chart.yaml",
    "repos": "pre-commit's",
    "jobs": "GitHub's",
    "manifests": "a job of GitLab's",
}
# Kinds of objects -> where Roost's values are in them; () where none are.
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "Application": ("spec", "source", "helm", "valuesObject"),
    "HelmRelease": ("spec", "values"),
    "ConfigMap": (),  # booked events: below
    "NodePool": (),
    "GitRepository": (),
    "Cluster": (),  # kind's
}


class Sample(NamedTuple):
    # Path and line.
    place: str
    text: str


def samples() -> list[Sample]:
    found = []
    folders = (REPOSITORY / "docs", REPOSITORY / "lab" / "docs")
    for path in (REPOSITORY / "README.md", *(page for folder in folders for page in sorted(folder.glob("**/*.md")))):
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
    first = next(iter(document))
    if first in HUBS or first in OTHERS:
        return None
    if first == "apiVersion":
        keys = KINDS[document["kind"]]
        for key in keys:
            document = document[key]
        return yaml.safe_dump(document) if keys else None
    # As a dependency of a parent's chart.
    return yaml.safe_dump(document["roost"]) if list(document) == ["roost"] else sample.text


SAMPLES: Final = samples()
VALUES: Final = [Sample(sample.place, text) for sample in SAMPLES if (text := values_of(sample)) is not None]


def test_samples_are_found() -> None:
    pages = {sample.place.partition(":")[0] for sample in VALUES}
    assert pages >= {"docs/headroom.md", "docs/how-to/gitops.md", "docs/install-helm.md"}
    assert len(VALUES) < len(SAMPLES)


@pytest.mark.parametrize("sample", VALUES, ids=lambda sample: sample.place)
def test_a_sample_of_values_has_no_fault_and_no_warning_and_renders(sample: Sample) -> None:
    merged = merge_values(DEFAULTS, [load(sample.text.encode(), sample.place)])
    assert [str(fault) for fault in report(merged, Release()) if fault.severity != "hint"] == []
    manifests, _ = make(merged, Release())
    assert manifests


def test_a_sample_of_a_hubs_values_is_imported() -> None:
    hubs = [sample for sample in SAMPLES if next(iter(yaml.safe_load(sample.text) or {"": 0})) in HUBS]
    assert {sample.place.partition(":")[0] for sample in hubs} >= {"docs/tutorials/kind.md"}
    for sample in hubs:
        result = import_layers([(sample.place, sample.text)])
        assert result.switch_off, sample.place
        assert [str(fault) for fault in result.warnings if fault.severity != "hint"] == [], sample.place


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
