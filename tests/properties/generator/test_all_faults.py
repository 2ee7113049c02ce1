"""What must hold of any values: each fault is found beside others, and what is accepted renders and
is read.
"""

import itertools
import json
from functools import cache
from typing import Final

import yaml
from hypothesis import HealthCheck, assume, event, example, given, reject, settings
from hypothesis import strategies as st

from generator import checks, pipeline
from generator.faults import ValuesError
from generator.render.manifests import Identity, render
from generator.schema.check import find_faults
from generator.values.loader import load
from generator.values.merge import Merged, merge_values
from generator.values.release_name import Release
from tests.builders import CHART_VALUES, HUB_RELEASE
from tests.parity.drawn_values import overrides
from tests.recorded_data import VALUES
from tests.unit.generator.linted import laid
from webhook.webhook_settings import read_settings

# Sound values, and what makes one fault of them each.
SOUND: Final = (VALUES / "sound.yaml").read_text()
FAULTS: Final = yaml.safe_load((VALUES / "faults-alone.yaml").read_text())
Break = tuple[tuple[str, ...], object]
ALONE: Final[list[Break]] = [(tuple(key.split()), value) for key, value in FAULTS.items()]


@cache
def said_of(*chosen: int) -> set[tuple[str, str]]:
    """What is said, and of which key, of values with these faults of `ALONE`."""
    values = yaml.safe_load(SOUND)
    for path, value in map(ALONE.__getitem__, chosen):
        holder = values
        for step in path[:-1]:
            holder = holder[int(step)] if isinstance(holder, list) else holder.setdefault(step, {})
        holder[int(path[-1]) if isinstance(holder, list) else path[-1]] = value
    return {
        (fault.key, fault.found)
        for fault in pipeline.find_faults(laid(yaml.safe_dump(values)), Release())
    }


def assert_all_found(*chosen: int) -> None:
    """Each is said as it is alone, and nothing else.

    What is said of the sound values, too, is said unless it reads a key with one of these faults.
    """
    always = said_of()
    own = set().union(*(said_of(one) - always for one in chosen))
    unread = always.intersection(*(said_of(one) for one in chosen))
    assert said_of(*chosen) == own | unread


def test_no_fault_hides_one_other_of_the_same_part() -> None:
    # Of another part, they are drawn below.
    for one, other in itertools.combinations(range(len(ALONE)), 2):
        if ALONE[one][0][0] == ALONE[other][0][0]:
            assert_all_found(one, other)


@given(st.sets(st.sampled_from(range(len(ALONE))), min_size=2, max_size=8))
@settings(deadline=None, max_examples=60)
def test_no_faults_hide_others(chosen: set[int]) -> None:
    assert_all_found(*chosen)


# What the policy is made of.
POLICY_KEYS = {
    "podClasses",
    "imageGate",
    "singleuser",
    "prePuller",
    "replaceSchedulers",
    "placeholders",
}
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def merged_of(values: dict[str, object]) -> Merged:
    """Merge drawn values; those that hold what no file may (control characters, an entry twice) are
    drawn again.
    """
    try:
        merged = merge_values(
            CHART_VALUES, [load(json.dumps(values, ensure_ascii=False).encode(), "drawn.yaml")]
        )
    except ValuesError:
        reject()
    assume(find_faults(merged) == [])
    return merged


@SLOW
@given(overrides(CHART_VALUES))
def test_whatever_fits_the_schema_renders_to_objects_with_the_identity_of_their_heads(
    values: dict[str, object],
) -> None:
    for manifest in render(merged_of(values).values, HUB_RELEASE):
        metadata = manifest.body["metadata"]
        assert isinstance(metadata, dict)
        read = (
            manifest.body["apiVersion"],
            manifest.body["kind"],
            metadata.get("namespace", ""),
            metadata["name"],
        )
        assert tuple(manifest.identity) == read


@SLOW
@given(overrides(CHART_VALUES))
@example({"singleuser": {"extraResource": {"limits": {"example.com/gpu": 1.5e300}}}})
@example({"singleuser": {"extraResource": {"limits": {"example.com/gpu": "1e99"}}}})
def test_whatever_the_lint_accepts_is_a_policy_that_the_webhook_reads(
    values: dict[str, object],
) -> None:
    merged = merged_of({key: value for key, value in values.items() if key in POLICY_KEYS})
    is_refused = any(fault.severity == "error" for fault in checks.find_faults(merged, HUB_RELEASE))
    event("refused by the lint" if is_refused else "accepted")
    if is_refused:
        return
    (policy,) = (
        manifest.body["data"]
        for manifest in render(merged.values, HUB_RELEASE)
        if manifest.identity == Identity("v1", "ConfigMap", "jhub", "hub-roost-release")
    )
    assert isinstance(policy, dict)
    read_settings(policy["release.json"].encode())
