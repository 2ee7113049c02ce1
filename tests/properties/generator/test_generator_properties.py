"""Any values that the generator accepts can be rendered, parsed and read by the webhook."""

import json

from hypothesis import HealthCheck, assume, event, example, given, reject, settings

from generator.checks import lint
from generator.faults import ValuesError
from generator.locations import chart_folder
from generator.render.manifests import Identity, render
from generator.schema.check import find_faults
from generator.values.loader import load
from generator.values.merge import Merged, merge_values
from generator.values.release import Release
from tests.parity.drawn_values import overrides
from webhook.settings import read_settings

DEFAULTS = load((chart_folder() / "values.yaml").read_bytes(), "chart/values.yaml")
RELEASE = Release("hub", "jhub", "v1.37.2")
# What the policy is made of.
POLICY_KEYS = {"podClasses", "imageGate", "singleuser", "prePuller", "replaceSchedulers", "placeholders"}
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def merged_of(values: dict[str, object]) -> Merged:
    """Merge drawn values; those that hold what no file may (control characters, an entry twice) are drawn again."""
    try:
        merged = merge_values(DEFAULTS, [load(json.dumps(values, ensure_ascii=False).encode(), "drawn.yaml")])
    except ValuesError:
        reject()
    assume(find_faults(merged) == [])
    return merged


def is_accepted(merged: Merged) -> bool:
    refused = any(fault.severity == "error" for fault in lint(merged, RELEASE))
    event("refused by the lint" if refused else "accepted")
    return not refused


@SLOW
@given(overrides(DEFAULTS))
def test_whatever_fits_the_schema_renders_to_objects_with_the_identity_of_their_heads(
    values: dict[str, object],
) -> None:
    for manifest in render(merged_of(values).values, RELEASE):
        metadata = manifest.body["metadata"]
        assert isinstance(metadata, dict)
        read = (manifest.body["apiVersion"], manifest.body["kind"], metadata.get("namespace", ""), metadata["name"])
        assert tuple(manifest.identity) == read


@SLOW
@given(overrides(DEFAULTS))
@example({"singleuser": {"extraResource": {"limits": {"example.com/gpu": 1.5e300}}}})
@example({"singleuser": {"extraResource": {"limits": {"example.com/gpu": "1e99"}}}})
def test_whatever_the_lint_accepts_is_a_policy_that_the_webhook_reads(values: dict[str, object]) -> None:
    merged = merged_of({key: value for key, value in values.items() if key in POLICY_KEYS})
    if not is_accepted(merged):
        return
    (policy,) = (
        manifest.body["data"]
        for manifest in render(merged.values, RELEASE)
        if manifest.identity == Identity("v1", "ConfigMap", "jhub", "hub-roost-release")
    )
    assert isinstance(policy, dict)
    read_settings(policy["release.json"].encode())
