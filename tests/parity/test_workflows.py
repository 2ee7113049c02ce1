"""What a forge would say of the workflows, and what Helm and a registry say of the chart that a
release holds.

And what the repository of somebody who runs Roost gets: the hooks, the action and GitLab's job of
docs/how-to/ci.md.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.harness.fixtures import require_binary
from tests.harness.registry import RealRegistry
from tests.parity.renderers import run_helm
from tools.image import EPOCH_SECONDS
from tools.registry import Registry
from tools.release.addresses import Addresses
from tools.release.fill import write_source
from tools.release.oci import Archive
from tools.release.packages import package_chart
from tools.release.version import version_of
from tools.root import ROOT

IMAGE: Final = "registry.example.org/me/roost"


VALUES: Final = "webhook:\n  replicas: 2\n"
RENDER: Final = ("render", "-f", "values.yaml", "--release", "roost", "--namespace", "jhub")


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {
        key: text for key, text in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}
    }
    return subprocess.run(
        command,
        cwd=folder,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def documented(first_key: str) -> dict[str, Any]:
    """The sample of docs/how-to/ci.md that begins with this key."""
    page = (ROOT / "docs/how-to/ci.md").read_text(encoding="utf-8")
    (sample,) = re.findall(rf"```yaml\n({first_key}:.*?)```", page, re.DOTALL)
    document: dict[str, Any] = yaml.safe_load(sample)
    return document


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment that pre-commit made for the hooks, from this checkout as it is committed."""
    folder, home = tmp_path_factory.mktemp("theirs"), tmp_path_factory.mktemp("pre-commit")
    head = run(["git", "rev-parse", "HEAD"], ROOT).stdout.strip()
    config = documented("repos")
    config["repos"][0] |= {"repo": str(ROOT), "rev": head}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (folder / "values.yaml").write_text(VALUES)
    made = run(
        [sys.executable, "-m", "roost", *RENDER, "--output-dir", "manifests"],
        folder,
        PYTHONPATH=f"{ROOT}:{ROOT}/lab",
    )
    assert made.returncode == 0, made.stderr
    assert run(["git", "init", "--quiet"], folder).returncode == 0
    hooks = [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color=never"]
    for values, outcome in (
        (VALUES, ("Passed", "Passed")),
        (VALUES.replace("2", "3"), ("Passed", "Failed")),
        (VALUES.replace("2", "many"), ("Failed", "Failed")),
    ):
        (folder / "values.yaml").write_text(values)
        run(["git", "add", "--all"], folder)
        done = run(hooks, folder, PRE_COMMIT_HOME=str(home), PIP_NO_COMPILE="1")
        assert tuple(re.findall(r"\.{3}(Passed|Failed)", done.stdout)) == outcome, (
            done.stdout + done.stderr
        )
    assert 'values.yaml:2: webhook.replicas: found "many"' in done.stdout
    (environment,) = home.glob("*/py_env-*")
    return environment


def test_hooks_the_action_and_gitlabs_job_say_what_differs_and_what_is_faulty(
    installed: Path, tmp_path: Path
) -> None:
    bash = shutil.which("bash") or "bash"
    runner = tmp_path / "runner"
    # The action's installation finds there what pre-commit has installed.
    shutil.copytree(installed, runner / "roost", symlinks=True, copy_function=os.link)
    path = f"{installed}/bin:{os.environ['PATH']}"
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    inputs = {name: given["default"] for name, given in action["inputs"].items()}
    inputs |= documented("jobs")["jobs"]["roost"]["steps"][-1]["with"]
    named = {f"${{{{ inputs.{name} }}}}": value for name, value in inputs.items()}
    script = documented("manifests")["manifests"]["script"]
    faulty = "::error file=values.yaml,line=2,title=webhook.replicas::"
    differs = "~ Deployment jhub/roost-webhook (apps/v1)\n"
    install, compare = action["runs"]["steps"]
    given = {name: named[value] for name, value in compare["env"].items()} | {
        "RUNNER_TEMP": str(runner)
    }
    shell = [bash, "-eo", "pipefail", "-c"]
    done = run(
        [*shell, install["run"]],
        tmp_path,
        PATH=path,
        RUNNER_TEMP=str(runner),
        GITHUB_ACTION_PATH=str(ROOT),
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "values.yaml").write_text(VALUES)
    assert (
        run([f"{installed}/bin/roost", *RENDER, "--output-dir", "manifests"], tmp_path).returncode
        == 0
    )
    for replicas, code, annotation in (("2", 0, ""), ("many", 1, faulty), ("3", 1, differs)):
        (tmp_path / "values.yaml").write_text(VALUES.replace("2", replicas))
        done = run([*shell, compare["run"]], tmp_path, **given)
        assert (done.returncode, annotation in done.stdout) == (code, True), (
            done.stdout + done.stderr
        )
        done = run([*shell, "\n".join(script[1:])], tmp_path, PATH=path)
        assert done.returncode == code, done.stdout + done.stderr
        assert ("values.yaml:2: webhook.replicas: " in done.stdout) == (replicas == "many")


def test_actionlint_has_nothing_to_say_of_the_workflows_and_the_action(tmp_path: Path) -> None:
    program = require_binary("actionlint")
    files = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))
    # It reads an action's inputs where a workflow uses it, and an action's steps in no place but a
    # workflow.
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    inputs = {name: {"type": "string"} for name in action["inputs"]}
    use = {"uses": "./", "with": documented("jobs")["jobs"]["roost"]["steps"][-1]["with"]}
    job = {"runs-on": "ubuntu-24.04", "steps": [*action["runs"]["steps"], use]}
    as_workflow = tmp_path / "action.yml"
    as_workflow.write_text(
        yaml.safe_dump({"on": {"workflow_call": {"inputs": inputs}}, "jobs": {"action": job}})
    )
    files.append(str(as_workflow))
    # Without the linters of other languages, which a machine may have or not.
    done = subprocess.run(
        [program, "-shellcheck=", "-pyflakes=", *files],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert len(files) > 1


def test_the_chart_that_a_release_pushes_names_the_released_image(tmp_path: Path) -> None:
    helm = require_binary("helm")
    source, tgz, archive = tmp_path / "source", tmp_path / "roost.tgz", tmp_path / "chart.tar"
    forge = "https://forge.example.org/me/roost"
    write_source(source, Addresses(forge, "", IMAGE.rpartition("/")[0]))
    package_chart(source / "chart", tgz, archive, EPOCH_SECONDS)
    run_helm(helm, "lint", "--strict", str(source / "chart"))
    with RealRegistry() as registry:
        charts = f"oci://{registry.host}/charts"
        version = version_of()
        with Archive(archive) as read:
            Registry(registry.host, environment={}).push(read, "charts/roost", version)
        published = (f"{charts}/roost", f"--version={version}", "--plain-http")
        chart = yaml.safe_load(run_helm(helm, "show", "chart", *published))
        rendered = run_helm(
            helm,
            "template",
            "hub",
            *published,
            "--kube-version=1.37.2",
            "--set=recorder.enabled=true",
        )
        readme = run_helm(helm, "show", "readme", *published)
    assert chart["sources"] == [forge]
    listed = {
        entry["name"]: entry["image"]
        for entry in yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
    }
    assert listed["roost"] == f"{IMAGE}:{version}"
    for name in (IMAGE, f"{IMAGE}-lab"):
        assert f"image: {name}:{version}" in rendered.replace('"', "")
    assert readme.startswith("# Roost")
