"""Seating's pod as rendered: it waits for no ConfigMap that nobody makes, and reads no bookings
that the values switch off.
"""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from generator.render.manifests import render
from generator.values.release_name import Release
from tests.unit.generator.linted import merged

SWITCHES = ("controllers", "recorder")


@settings(max_examples=25)
@given(
    st.fixed_dictionaries({name: st.booleans() for name in SWITCHES}),
    st.sampled_from(["webhook", "none"]),
    st.booleans(),
    st.booleans(),
)
def test_the_pod_mounts_what_is_rendered_and_bookings_that_count(
    switched_on: dict[str, bool], admission: str, has_events: bool, config_maps: bool
) -> None:
    values: dict[str, Any] = {name: {"enabled": is_on} for name, is_on in switched_on.items()}
    values |= {
        "admission": {"mode": admission},
        "prePuller": {"enabled": False},
        "placeholders": [],
        "events": {"enabled": has_events, "configMaps": config_maps},
        "seating": {"enabled": True},
    }
    release = Release("hub", "hub", "v1.37.2")
    objects: list[dict[str, Any]] = [
        dict(manifest.body) for manifest in render(merged(json.dumps(values)).values, release)
    ]
    config_maps_made = {each["metadata"]["name"] for each in objects if each["kind"] == "ConfigMap"}
    (pod,) = [
        each["spec"]["template"]["spec"]
        for each in objects
        if each["kind"] == "Deployment" and each["metadata"]["name"] == "hub-roost-seating"
    ]
    (container,) = pod["containers"]
    needed = {
        volume["configMap"]["name"]
        for volume in pod["volumes"]
        if "configMap" in volume and not volume["configMap"].get("optional")
    }
    assert needed == {"hub-roost-release"}
    assert needed <= config_maps_made
    names = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == names
    is_read = has_events and config_maps
    assert ("bookings" in names) == is_read
    assert any("--bookings=" in text for text in container["command"]) == is_read
