"""`placeholder.defaults`: an entry of `placeholders` inherits what it doesn't name, and may say none."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.render.functions import complete_placeholder_set
from generator.render.manifests import render
from generator.values.release import Release
from tests.unit.generator.linted import merged, said

Values = dict[str, Any]


def pods(text: str) -> dict[str, Values]:
    bodies: list[Values] = [dict(one.body) for one in render(merged(text).values, Release("hub", "hub"))]
    return {one["metadata"]["name"]: one["spec"]["template"] for one in bodies if one["kind"] == "StatefulSet"}


def test_the_defaults_hold_for_every_entry_that_does_not_name_them() -> None:
    found = pods("""
placeholder:
  defaults:
    annotations: {x: "y"}
    nodeSelector: {pool: users}
    requiredNodeTerms: [{matchExpressions: [{key: a, operator: Exists}]}]
placeholders: [{name: a, replicas: 1}, {name: b, replicas: 2, nodeSelector: {pool: large}}]
""")
    assert [pod["spec"]["nodeSelector"] for pod in found.values()] == [{"pool": "users"}, {"pool": "large"}]
    for pod in found.values():
        assert pod["metadata"]["annotations"] == {"x": "y"}
        required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert required["nodeSelectorTerms"] == [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "50m", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("tolerations", "is_warned"),
    [
        ("[]", True),
        ("[{key: nvidia.com/gpu, operator: Exists}]", True),
        ("[{operator: Exists}]", False),
        ("[{key: hub.jupyter.org/dedicated, operator: Exists}, {key: hub.jupyter.org_dedicated, value: user}]", False),
        ("[{key: hub.jupyter.org/dedicated, operator: Exists}]", True),
    ],
)
def test_an_entry_that_drops_the_user_pools_toleration_is_warned_of(tolerations: str, is_warned: bool) -> None:
    text = f"placeholders: [{{name: a, replicas: 1, tolerations: {tolerations}}}]"
    assert ("prod.yaml:1: warning: placeholders[0].tolerations: leaves out" in said(text)) is is_warned


def test_an_entry_without_pods_may_drop_what_it_likes() -> None:
    assert "leaves out" not in said("placeholders: [{name: a, replicas: 0, tolerations: []}]")


ENTRIES: st.SearchStrategy[dict[str, object]] = st.dictionaries(
    st.sampled_from(["resources", "nodeSelector", "tolerations", "requiredNodeTerms", "labels", "windows"]),
    st.one_of(st.none(), st.just({}), st.just([]), st.just("nodes"), st.dictionaries(st.just("a"), st.just("b"))),
)


@given(entry=ENTRIES)
def test_a_named_key_counts_as_a_whole_and_every_other_is_the_defaults(entry: Mapping[str, object]) -> None:
    defaults = {"resources": {"requests": {"cpu": "1"}}, "nodeSelector": {"x": "y"}, "tolerations": [1], "labels": {}}
    whole = complete_placeholder_set(entry, defaults)
    named = {key: value for key, value in entry.items() if value is not None}
    usual = {**defaults, "windows": [], "learn": None}
    assert whole == {**usual, **named}
