"""Render the same values with Helm and with Roost, and say where the two differ."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from generator.faults import raise_errors
from generator.render.manifests import render
from generator.schema.check import find_faults
from generator.values.files import read_values
from generator.values.release_name import Release
from tests.builders import HUB_RELEASE
from tools.root import ROOT

CHART = ROOT / "chart"
# Values files that an operator may well write, and that two YAML readers or two printers could take
# apart.
ODD = sorted((ROOT / "tests" / "parity" / "odd").glob("*.yaml"))

# (apiVersion, kind, namespace, name): what tells objects apart.
Identity = tuple[str, str, str, str]
Objects = dict[Identity, dict[str, Any]]

# Of nobody's cluster: kube-scheduler wants one before it reads its configuration.
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {token: x}}]
"""


class HelmError(Exception):
    """Helm refused; the text is what it said."""


def run_helm(helm: Path, *arguments: str, kubeconfig: Path | None = None) -> str:
    """Run Helm and give its output. Raises HelmError."""
    environment = {
        "HOME": "/nonexistent",
        "PATH": "/usr/bin:/bin",
        "KUBECONFIG": str(kubeconfig or "/nonexistent"),
    }
    done = subprocess.run(
        [helm, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        raise HelmError(done.stderr)
    return done.stdout


def by_identity(documents: str) -> Objects:
    """Parse a YAML stream into objects; one object rendered twice is an error."""
    found: Objects = {}
    for body in yaml.load_all(documents, Loader=yaml.CSafeLoader):
        if body is None:
            continue
        key = (
            body["apiVersion"],
            body["kind"],
            body["metadata"].get("namespace", ""),
            body["metadata"]["name"],
        )
        assert key not in found, f"{key} is rendered twice"
        found[key] = body
    return found


def helm_template(
    helm: Path, files: Sequence[Path], release: Release = HUB_RELEASE, chart: Path = CHART
) -> Objects:
    """Objects that `helm template` gives for these values files; hooks are Helm's own."""
    flags = (
        "--no-hooks",
        f"--namespace={release.namespace}",
        f"--kube-version={release.kube_version}",
    )
    values = (f"--values={file}" for file in files)
    return by_identity(run_helm(helm, "template", release.name, str(chart), *flags, *values))


def roost_render(files: Sequence[Path], release: Release = HUB_RELEASE) -> Objects:
    """Objects that `roost render` gives for these values files.

    Raises ValuesError for what the schema refuses.
    """
    merged = read_values([str(file) for file in files])
    raise_errors(find_faults(merged))
    manifests = render(merged.values, release)
    return {
        (
            manifest.identity.api_version,
            manifest.identity.kind,
            manifest.identity.namespace,
            manifest.identity.name,
        ): manifest.body
        for manifest in manifests
    }


def differences(ours: object, theirs: object, path: str = "") -> list[str]:
    """Where two values differ, one line each; kinds of numbers count, so that 1 and 1.0 and true
    are three things.
    """
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        found = [f"{path}: key {key!r} on one side only" for key in ours.keys() ^ theirs.keys()]
        for key in ours.keys() & theirs.keys():
            found += differences(ours[key], theirs[key], f"{path}.{key}")
        return sorted(found)
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [
            line
            for index, (one, other) in pairs
            for line in differences(one, other, f"{path}[{index}]")
        ]
    if type(ours) is type(theirs) and ours == theirs:
        return []
    return [f"{path}: roost {ours!r}, helm {theirs!r}"]


def assert_same(ours: Objects, theirs: Objects) -> None:
    one_side = {key: "roost" if key in ours else "helm" for key in ours.keys() ^ theirs.keys()}
    assert not one_side, f"objects on one side only: {one_side}"
    lines = [line for key in ours for line in differences(ours[key], theirs[key], "/".join(key))]
    assert not lines, "\n".join(lines)
