"""roost_core/scheduler/plugins.py says which minors of Kubernetes Roost supports. What else names
them says the same.
"""

import re
import subprocess
from typing import Final

import pytest
import yaml

from generator.render.kube_scheduler import SCHEDULER_TAGS
from roost_core.scheduler.plugins import NEWEST_MINOR, OLDEST_MINOR
from tools.root import ROOT

MINORS: Final = [f"1.{minor}" for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1)]
SPAN: Final = f"{MINORS[0]} to {MINORS[-1]}"
# Of minors; measured times and ratios are smaller.
# A figure's range stands in parentheses after it: 1.71 (1.42 to 1.79).
_SPAN: Final = re.compile(r"(?<!\d \()\b1\.[3-9][0-9] to 1\.[3-9][0-9]\b")
# Pages that tell an operator which clusters Roost runs on.
PAGES: Final = (
    "README.md",
    "CONTRIBUTING.md",
    "chart/README.md",
    "docs/clusters.md",
    "docs/install-manifests.md",
    "docs/upgrade.md",
    "lab/docs/simulator.md",
)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_there_is_a_kube_scheduler_of_each_minor() -> None:
    assert list(SCHEDULER_TAGS) == MINORS


def test_the_chart_refuses_older_clusters() -> None:
    assert yaml.safe_load(read("chart/Chart.yaml"))["kubeVersion"] == f">={MINORS[0]}.0-0"


def test_ci_tries_each_minor() -> None:
    jobs = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"].values()
    tried = [job["strategy"]["matrix"]["minor"] for job in jobs if "strategy" in job]
    assert tried == [MINORS]


@pytest.mark.parametrize("folder", ["kubernetes", "kubelet"])
def test_programs_of_each_older_minor_are_pinned(folder: str) -> None:
    pinned = sorted((ROOT / "tests/controlplane" / folder).glob("minor-*.mod"))
    assert [path.name for path in pinned] == [f"minor-{minor}.mod" for minor in MINORS[:-1]]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_the_supported_minors(name: str) -> None:
    assert SPAN in _SPAN.findall(read(name))


def test_no_page_names_other_minors() -> None:
    pages = subprocess.run(
        ["git", "ls-files", "*.md", ":!CHANGELOG.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    others = {name: {*_SPAN.findall(read(name))} - {SPAN} for name in pages}
    assert {name: spans for name, spans in others.items() if spans} == {}


def test_the_page_of_clusters_has_a_row_for_each_minor() -> None:
    rows = re.findall(r"^\| (1\.[0-9]+) \|", read("docs/clusters.md"), re.MULTILINE)
    assert rows == MINORS[::-1]
