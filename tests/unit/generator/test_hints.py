"""`roost validate` hints at an image that no registry has, and at one that keeps a warm set on
needlessly.
"""

import pytest

from generator.checks import find_hints
from generator.pipeline import find_faults
from generator.values.release_name import Release
from tests.recorded_data import rows
from tests.unit.generator.linted import merged

OWN = "image: {name: registry.example.org/roost}"
LISTED = 'singleuser: {image: {name: q.io/a/b, tag: "1"}}'


@pytest.mark.parametrize(
    "text", [LISTED, 'singleuser: {profileList: [{kubespawner_override: {image: "q.io/c:1"}}]}']
)
def test_network_tools_that_are_not_listed_are_hinted_at(text: str) -> None:
    (hint,) = find_hints(merged(f"{OWN}\n{text}"), Release())
    assert (hint.severity, hint.key) == ("hint", "singleuser.networkTools.image.name")
    assert hint.line
    assert hint.fix
    assert str(hint).startswith("hint: singleuser.networkTools.image.name isn't set: ")
    assert hint in find_faults(merged(f"{OWN}\n{text}"), Release(), with_hints=True)
    assert find_faults(merged(text), Release()) == [], "not of whoever only renders"


@pytest.mark.parametrize("text", rows("generator/hints-none"))
def test_where_no_image_is_missing_or_no_warm_set_in_the_way_nothing_is_hinted_at(
    text: str,
) -> None:
    assert find_hints(merged(f"{OWN}\n{text}"), Release()) == []


@pytest.mark.parametrize("text", ["", "image: {pullPolicy: Always}", "image: {name: roost}"])
def test_an_image_that_no_registry_has_is_hinted_at(text: str) -> None:
    (hint,) = find_hints(merged(text), Release())
    assert (hint.severity, hint.key) == ("hint", "image.name")
    assert "docs/install-helm.md#the-image" in str(hint)
    assert find_hints(merged("enabled: false"), Release()) == [], (
        "what installs nothing needs no image"
    )


@pytest.mark.parametrize(("start", "end", "said"), rows("generator/hints-windows"))
def test_a_window_that_lasts_is_hinted_at_with_its_longest_time(
    start: str, end: str, said: str
) -> None:
    window = f'{{name: w, replicas: 30, timeZone: Europe/Berlin, start: "{start}", end: "{end}"}}'
    hints = find_hints(
        merged(f"{OWN}\nplaceholders: [{{name: a, replicas: 1, windows: [{window}]}}]"), Release()
    )
    assert [hint.key for hint in hints] == (["placeholders[0].windows[0].start"] if said else [])
    assert all(said in hint.found for hint in hints)


@pytest.mark.parametrize(("text", "key"), rows("generator/hints"))
def test_what_works_and_may_surprise_is_hinted_at(text: str, key: str) -> None:
    assert [hint.key for hint in find_hints(merged(f"{OWN}\n{text}"), Release())] == (
        [key] if key else []
    )


@pytest.mark.parametrize(
    ("monitoring", "hinted"),
    [
        ("{prometheusRule: {enabled: true}}", True),
        ("{prometheusRule: {enabled: true}, serviceMonitor: {enabled: true}}", False),
        ("{serviceMonitor: {enabled: true}}", False),
    ],
)
def test_alerts_without_metrics_are_hinted_at(monitoring: str, hinted: bool) -> None:
    found = find_hints(merged(f"{OWN}\nmonitoring: {monitoring}"), Release())
    assert [hint.key for hint in found] == ["monitoring.serviceMonitor.enabled"] * hinted
