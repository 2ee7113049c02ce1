"""What is rendered, by meaning: the objects of tests/data/golden, written out and read by people.

Both renderers change together, so parity says nothing of what they render. Each file's first
document has the values, the others are objects, whole but for the labels that all objects have.
Where a change is meant, write it there.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.render.manifests import render
from generator.values.files import parse_values
from generator.values.release_name import Release
from roost_core.placement.labels import popular_pull_name
from tests.builders import HUB_RELEASE

GOLDEN = sorted((Path(__file__).parents[2] / "data" / "golden").glob("*.yaml"))


def rendered(text: str) -> dict[tuple[str, str], Any]:
    """What the values render, by kind and name, without what all objects have in their metadata."""
    found: dict[tuple[str, str], Any] = {}
    for manifest in render(parse_values(text.encode(), "values.yaml").values, HUB_RELEASE):
        body: Any = manifest.body
        labels = body["metadata"].pop("labels")
        assert (labels["app.kubernetes.io/name"], labels["app.kubernetes.io/instance"]) == (
            "roost",
            "hub",
        )
        metadata = (
            body.get("spec", {}).get("template", {}).get("metadata", {}) if "spec" in body else {}
        )
        # They change with every change of the configuration, so that its pods are replaced.
        hashes = [key for key in metadata.get("annotations", {}) if key.startswith("checksum/")]
        for key in hashes:
            del metadata["annotations"][key]
        if hashes and not metadata["annotations"]:
            del metadata["annotations"]
        found[body["kind"], body["metadata"]["name"]] = body
    return found


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_what_is_rendered_is_what_is_written_out(path: Path) -> None:
    given, *expected = yaml.safe_load_all(path.read_text())
    objects = rendered(yaml.safe_dump(given["values"]))
    for body in expected:
        assert objects[body["kind"], body["metadata"]["name"]] == body
    # Of the kinds that a file holds whole, there are no others.
    whole = set(given.get("whole", []))
    assert {key for key in objects if key[0] in whole} == {
        (body["kind"], body["metadata"]["name"]) for body in expected if body["kind"] in whole
    }


@pytest.mark.parametrize("release", ["hub", "roost.prod", "h" * 53, "h." * 26 + "h"])
def test_the_policy_lets_controllers_evict_each_pull_of_a_popular_image(release: str) -> None:
    shipped = parse_values(b"{}", "values.yaml").values
    policies = [
        str(manifest.body)
        for manifest in render(shipped, Release(release, "jhub", "v1.37.2"))
        if manifest.body["kind"] == "ValidatingAdmissionPolicy"
    ]
    begins = re.compile(r'request\.name\.startsWith\("([^"]+)"\) && request\.name\.matches')
    (prefix,) = (found for policy in policies for found in begins.findall(policy))
    for node in ("n", "ip-10-0-0-1.ec2.internal", "gke-users-pool-" + "0" * 40):
        assert popular_pull_name(release, node, "uid", "quay.io/me/popular:1").startswith(prefix)


def test_without_the_policies_no_right_over_pods_is_rendered() -> None:
    """Only policies narrow these rights: RBAC knows no labels."""
    values = {
        "clusterResources": False,
        "webhook": {"certificates": {"mode": "certManager"}},
        "popularImages": {"enabled": True},
        "events": {"enabled": True},
    }
    roles = [body for (kind, _), body in rendered(yaml.safe_dump(values)).items() if kind == "Role"]
    verbs = {
        verb
        for role in roles
        for rule in role["rules"]
        if {"pods", "pods/eviction"} & {*rule["resources"]}
        for verb in rule["verbs"]
    }
    assert verbs == {"list", "watch"}
