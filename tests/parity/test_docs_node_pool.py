"""Karpenter takes the NodePool of docs/how-to/node-pools.md, and Terraform's samples have the same taint and labels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
import yaml

from roost_core.placement.labels import startup_taint
from tests.harness.binaries import HarnessUnavailableError, ensure_module_files
from tests.harness.fixtures import give_up

PAGE: Final = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "node-pools.md").read_text(encoding="utf-8")
TAINT: Final = startup_taint("roost", "jhub")


def closed(schema: Any) -> Any:
    """The schema, which refuses unknown keys as an API server does with strict field validation."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        inner.setdefault("additionalProperties", False)
    return inner


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The schema of a NodePool's `spec`."""
    try:
        folder = ensure_module_files("karpenter")
    except HarnessUnavailableError as error:
        give_up(error)
    definition = yaml.safe_load((folder / "karpenter.sh_nodepools.yaml").read_text(encoding="utf-8"))
    (version,) = [one for one in definition["spec"]["versions"] if one["name"] == "v1"]
    spec: dict[str, Any] = closed(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    return spec


def node_pool() -> dict[str, Any]:
    (found,) = [
        pool
        for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
        if "NodePool" in (pool := yaml.safe_load(block))["kind"]
    ]
    return dict(found)


def test_the_node_pool_is_karpenters_and_has_the_releases_startup_taint(schema: dict[str, Any]) -> None:
    pool = node_pool()
    assert pool["apiVersion"] == "karpenter.sh/v1"
    jsonschema.Draft202012Validator(schema).validate(pool["spec"])
    assert [taint["key"] for taint in pool["spec"]["template"]["spec"]["startupTaints"]] == [TAINT]
