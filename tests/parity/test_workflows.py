"""What a forge would say of the workflows, and what Helm and a registry say of the script that publishes the chart."""

import os
import subprocess
from pathlib import Path
from typing import Final

import yaml

from tests.harness.fixtures import require_binary
from tests.harness.registry import RealRegistry
from tests.parity.renderers import run_helm

ROOT: Final = Path(__file__).resolve().parents[2]
IMAGE: Final = "registry.example.org/me/roost"


def test_actionlint_has_nothing_to_say_of_the_workflows() -> None:
    program = require_binary("actionlint")
    files = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))
    # Without the linters of other languages, which a machine may have or not.
    done = subprocess.run(
        [program, "-shellcheck=", "-pyflakes=", *files], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert len(files) > 1


def test_the_chart_that_a_release_pushes_names_the_released_image(tmp_path: Path) -> None:
    helm = require_binary("helm")
    with RealRegistry() as registry:
        charts = f"oci://{registry.host}/charts"
        environment = {
            **os.environ,
            "ROOST_IMAGE": IMAGE,
            "ROOST_CHARTS": charts,
            "ROOST_REPOSITORY": "https://forge.example.org/me/roost",
            "ROOST_OUTPUT": str(tmp_path),
            "HELM": str(helm),
            "HELM_PUSH_FLAGS": "--plain-http",
        }
        done = subprocess.run(
            [ROOT / "tools/release/chart.sh"], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Digest: sha256:" in done.stdout
        version = yaml.safe_load((ROOT / "chart/Chart.yaml").read_text(encoding="utf-8"))["version"]
        published = (f"{charts}/roost", f"--version={version}", "--plain-http")
        chart = yaml.safe_load(run_helm(helm, "show", "chart", *published))
        rendered = run_helm(helm, "template", "hub", *published, "--kube-version=1.37.2", "--set=recorder.enabled=true")
        readme = run_helm(helm, "show", "readme", *published)
    assert chart["sources"] == ["https://forge.example.org/me/roost"]
    listed = {entry["name"]: entry["image"] for entry in yaml.safe_load(chart["annotations"]["artifacthub.io/images"])}
    assert listed["roost"] == f"{IMAGE}:{version}"
    for name in (IMAGE, f"{IMAGE}-lab"):
        assert f"image: {name}:{version}" in rendered.replace('"', "")
    assert readme.startswith("# Roost")
