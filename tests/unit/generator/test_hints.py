"""`roost validate` hints at an image that keeps the warm set on although pullers bring the users' images."""

from __future__ import annotations

import pytest

from generator.checks.hints import find_hints
from generator.pipeline import check, report
from generator.values.release import Release
from tests.unit.generator.linted import merged

LISTED = 'singleuser: {image: {name: a/b, tag: "1"}}'


@pytest.mark.parametrize("text", [LISTED, 'singleuser: {profileList: [{kubespawner_override: {image: "c:1"}}]}'])
def test_network_tools_that_are_not_listed_are_hinted_at(text: str) -> None:
    (hint,) = find_hints(merged(text))
    assert (hint.severity, hint.key) == ("hint", "singleuser.networkTools.image.name")
    assert hint.line
    assert hint.fix
    assert ": hint: singleuser.networkTools" in str(hint)
    assert hint in report(merged(text), Release())
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
    assert find_hints(merged(text)) == []
