"""What the lint lets through, the model of a cycle reads: both go by one table of plugins."""

import json
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.checks import find_faults
from generator.render.manifests import render
from generator.schema.check import read_schema
from generator.values.release_name import Release
from roost_core.scheduler.plugins import NEWEST_MINOR, OLDEST_MINOR, PLUGINS
from roost_core.scheduler.profile import read_profiles
from tests.unit.generator.linted import merged

POINTS = tuple(read_schema()["definitions"]["plugins"]["properties"])  # type: ignore[index]
NAMES = st.sampled_from(sorted(PLUGINS))
ENABLED = st.lists(NAMES, unique=True, max_size=3).map(
    lambda names: [{"name": name, "weight": 2} for name in names]
)
DISABLED = st.lists(NAMES | st.just("*"), unique=True, max_size=3).map(
    lambda names: [{"name": name} for name in names]
)
SETS = st.dictionaries(
    st.sampled_from(POINTS),
    st.fixed_dictionaries({}, optional={"enabled": ENABLED, "disabled": DISABLED}),
    max_size=3,
)


@settings(max_examples=150)
@given(plugins=SETS, minor=st.integers(OLDEST_MINOR, NEWEST_MINOR))
def test_the_model_reads_all_that_the_lint_lets_through(
    plugins: dict[str, Any], minor: int
) -> None:
    spreading = {
        "name": "PodTopologySpread",
        "args": {"defaultingType": "List", "defaultConstraints": []},
    }
    profile = {"plugins": plugins, "pluginConfig": [spreading]}
    values = merged(json.dumps({"scheduler": {"profiles": {"user": profile}}}))
    release = Release(kube_version=f"v1.{minor}.0")
    if any(fault.severity == "error" for fault in find_faults(values, release)):
        return
    (config,) = (
        one.body["data"]
        for one in render(values.values, release)
        if one.identity.kind == "ConfigMap" and one.identity.name.endswith("-scheduler")
    )
    assert isinstance(config, dict)
    # Raises ProfileError, which would stop the mover.
    read_profiles(yaml.safe_load(config["config.yaml"]), minor)
