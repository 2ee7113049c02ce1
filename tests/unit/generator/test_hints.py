"""`roost validate` hints at an image that no registry has, and at one that keeps a warm set on needlessly."""

import pytest

from generator.checks import find_hints
from generator.pipeline import check, report
from generator.values.release import Release
from tests.unit.generator.linted import merged

OWN = "image: {name: registry.example.org/roost}"
LISTED = 'singleuser: {image: {name: a/b, tag: "1"}}'


@pytest.mark.parametrize("text", [LISTED, 'singleuser: {profileList: [{kubespawner_override: {image: "c:1"}}]}'])
def test_network_tools_that_are_not_listed_are_hinted_at(text: str) -> None:
    (hint,) = find_hints(merged(f"{OWN}\n{text}"))
    assert (hint.severity, hint.key) == ("hint", "singleuser.networkTools.image.name")
    assert hint.line
    assert hint.fix
    assert ": hint: singleuser.networkTools" in str(hint)
    assert hint in report(merged(f"{OWN}\n{text}"), Release())
    assert check(merged(text), Release()) == [], "not of whoever only renders"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "prePuller: {extraImages: {a: {name: a/b, tag: '1'}}}",
        'singleuser: {image: {name: a/b, tag: "1"}, networkTools: {image: {name: tools, tag: "1"}}}',
        f"{LISTED}\npodClasses: {{user: {{warm: null}}}}",
        f"{LISTED}\nwebhook: {{readNodes: false}}",
        f"{LISTED}\nadmission: {{mode: none}}",
        f"{LISTED}\nprePuller: {{enabled: false}}",
        f"{LISTED}\nenabled: false",
    ],
)
def test_where_no_image_is_missing_or_no_warm_set_in_the_way_nothing_is_hinted_at(text: str) -> None:
    assert find_hints(merged(f"{OWN}\n{text}")) == []


@pytest.mark.parametrize("text", ["", "image: {pullPolicy: Always}", "image: {name: roost}"])
def test_an_image_that_no_registry_has_is_hinted_at(text: str) -> None:
    (hint,) = find_hints(merged(text))
    assert (hint.severity, hint.key) == ("hint", "image.name")
    assert "docs/install-helm.md#the-image" in str(hint)


def test_a_release_that_installs_nothing_needs_no_image() -> None:
    assert find_hints(merged("enabled: false")) == []
