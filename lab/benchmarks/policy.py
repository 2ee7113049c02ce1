"""Write the policy document that both webhooks read, as the chart renders it.

Owns which values the benchmarks' hub has; the document itself is cut out of what `roost render`
gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.root import ROOT
from generator.render.manifests import render
from generator.values.files import read_values
from generator.values.merge import SetOptions
from generator.values.release_name import Release
from roost_core.placement.labels import pulled_label
from webhook.webhook_settings import read_settings

RELEASE: Final = "hub"
VALUES: Final = ROOT / "lab" / "benchmarks" / "values.yaml"
IMAGES: Final = ("quay.io/benchmark/science:2026.11", "quay.io/benchmark/network-tools:2026.11")


def rendered(
    namespace: str,
    *settings: str,
    json_settings: Sequence[str] = (),
    kube_version: str | None = None,
) -> list[dict[str, Any]]:
    """The objects that `roost render` gives for the benchmarks' values.

    settings: `--set` pairs. json_settings: `--set-json` pairs.
    """
    values = read_values((str(VALUES),), SetOptions(json_settings, settings)).values
    release = Release(RELEASE, namespace, *([kube_version] if kube_version else ()))
    return [manifest.body for manifest in render(values, release)]


def rendered_scheduler_config(namespace: str) -> dict[str, Any]:
    """The KubeSchedulerConfiguration that `roost render` gives for the benchmarks' values."""
    for manifest in rendered(namespace):
        if manifest["kind"] == "ConfigMap" and "config.yaml" in manifest["data"]:
            found: dict[str, Any] = yaml.safe_load(manifest["data"]["config.yaml"])
            return found
    raise RuntimeError("found no ConfigMap with config.yaml in the rendered objects, expected 1")


def write_policy(path: Path, namespace: str, *settings: str) -> Path:
    """Write release.json for a hub in `namespace`; returns its path."""
    documents = [
        found["data"]["release.json"]
        for found in rendered(namespace, *settings)
        if found["kind"] == "ConfigMap" and "release.json" in found.get("data", {})
    ]
    if len(documents) != 1:
        raise RuntimeError(
            f"found {len(documents)} ConfigMaps with release.json in the rendered objects,"
            " expected 1"
        )
    read_settings(documents[0].encode())  # report faults here, not by a server that doesn't start
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(documents[0])
    return path


def pulled_labels(namespace: str) -> list[str]:
    """Node labels that say: this node holds the users' images."""
    return [pulled_label(RELEASE, namespace, image) for image in IMAGES]
