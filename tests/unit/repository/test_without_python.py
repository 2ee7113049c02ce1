"""docs/how-to/without-python.md: its shell function runs what Roost's command line runs."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from generator.importing.importer import import_layers
from generator.pipeline import render
from generator.values.loader import load
from generator.values.merge import merge_values
from generator.values.release_name import Release
from tests.builders import CHART_VALUES
from tools.root import ROOT

PAGE: Final = (ROOT / "docs/how-to/without-python.md").read_text(encoding="utf-8")
DOCKERFILE: Final = (ROOT / "Dockerfile").read_text(encoding="utf-8")
BLOCKS: Final = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
HUB: Final = "singleuser: {image: {name: quay.io/jupyter/scipy-notebook, tag: '2026-11-03'}}\n"
# Stands in for Docker: notes its arguments, a line each, and runs the image's entry point. Without
# --interactive it has no stdin.
DOCKER: Final = f"""#!/bin/sh
printf '%s\\n' "$@" >>called
[ "$1" = run ] || exit 0
case " $* " in *" --interactive "*) ;; *) exec </dev/null ;; esac
while [ "$1" != roost-lab ]; do shift; done
shift
exec {sys.executable} -m roost "$@"
"""


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_function_runs_roost_on_files_of_the_folder_and_on_stdin(
    shell: str, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    docker = programs / "docker"
    docker.write_text(DOCKER, encoding="utf-8")
    docker.chmod(0o755)
    work = tmp_path / "a hub"
    work.mkdir()
    (work / "hub.yaml").write_text(HUB, encoding="utf-8")
    script = f"{BLOCKS[0]}\nroost import hub.yaml >of_file && roost import - <hub.yaml >of_stdin\n"
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "lab")]),
    }
    subprocess.run(
        [shell, "-euc", script], cwd=work, env=environment, check=True, capture_output=True
    )
    for printed, name in (("of_file", "hub.yaml"), ("of_stdin", "-")):
        text = (work / printed).read_text(encoding="utf-8")
        assert "quay.io/jupyter/scipy-notebook" in text, name
        assert import_layers([("hub.yaml", HUB)]).switch_off[0] in text, name
    called = (work / "called").read_text(encoding="utf-8").splitlines()
    assert f"{work}:/work" in called
    assert f"{os.getuid()}:{os.getgid()}" in called


def test_the_images_of_the_page_are_targets_of_the_dockerfile() -> None:
    targets = set(re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE))
    assert set(re.findall(r"--target (\S+)", PAGE)) == {"roost-lab"}
    assert "roost-lab" in targets
    # What is built without a target is what nodes run.
    assert DOCKERFILE.rstrip().endswith("\nFROM roost")
    assert re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE) == ['["roost"]']


def test_kubectl_and_the_function_mean_the_same_file() -> None:
    [of_function] = re.findall(r"--env KUBECONFIG=(\S+)", PAGE)
    assert set(re.findall(r"--kubeconfig (\S+)", PAGE)) == {of_function}
    [served] = re.findall(r"http://localhost:(\d+) --kubeconfig", PAGE)
    assert f"kubectl proxy --port {served} &" in PAGE


def test_nodes_run_the_images_that_the_page_pushes(tmp_path: Path) -> None:
    written = re.findall(r"^echo .*>image\.yaml$", PAGE, re.MULTILINE)
    subprocess.run(["sh", "-euc", "\n".join(written)], cwd=tmp_path, check=True)
    layer = load((tmp_path / "image.yaml").read_bytes(), "image.yaml")
    recorder = load(b"recorder: {enabled: true}", "recorder.yaml")
    manifests, _ = render(merge_values(CHART_VALUES, [layer, recorder]), Release())
    pushed = re.findall(r"^docker push (\S+)$", PAGE, re.MULTILINE)
    assert all(f"--tag {name} ." in PAGE for name in pushed)
    run = [
        image
        for manifest in manifests
        if manifest.identity.kind == "Deployment"
        for image in re.findall(r'image: "(\S+)"', manifest.text)
    ]
    roost, lab = pushed
    assert (run.count(roost), run.count(lab)) == (2, 1), run
