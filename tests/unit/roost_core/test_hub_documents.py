"""A hub's rules under a central release: what its document may say, and what it can't reach."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost_core.placement.hub_documents import MAX_CLASSES, HubRules, read_hub_rules
from roost_core.placement.labels import attract_label, pulled_label
from roost_core.placement.settings_reader import SettingsError
from tests.builders import IMAGE, policy_document, settings
from webhook.rules.rulebook import Rulebook

if TYPE_CHECKING:
    from roost_core.placement.settings import Settings

CENTRAL = {"release": "roost", "namespace": "roost-system"}
PROFILES: dict[str, object] = {"user": {}, "build": {}, "placeholder": {}}


def central(**changes: object) -> Settings:
    return settings(**CENTRAL, schedulerProfiles=PROFILES, **changes)


def document(**changes: object) -> dict[str, Any]:
    leases = {"controllers": "hub-roost-controllers"}
    own = {"release": "hub", "namespace": "hub-a", "central": CENTRAL, "leases": leases}
    return policy_document(**{**own, **changes})


def read(changes: dict[str, object], namespace: str = "hub-a", owner: Settings | None = None) -> HubRules:
    return read_hub_rules(json.dumps(document(**changes)).encode(), namespace, owner or central())


def test_pods_get_the_central_scheduler_and_the_labels_of_their_own_hub() -> None:
    rules = read({})
    rulebook = Rulebook(rules.settings)
    assert rulebook.rules["user"].scheduler_name == "roost.roost-system.user"
    gated = rulebook.gated(IMAGE)
    assert gated is not None
    assert gated.label == pulled_label("hub", "hub-a", IMAGE)
    label = attract_label("hub", "hub-a", "default")
    assert rulebook.attract("default").term["preference"]["matchExpressions"][0]["key"] == label
    assert rules.lost_profiles == {}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"namespace": "hub-b"}, 'namespace: found "hub-b", expected hub-a, where the ConfigMap is.'),
        ({"central": None}, "central: found nothing, expected roost in namespace roost-system"),
        ({"central": {"release": "other", "namespace": "a"}}, "expected roost in namespace roost-system"),
        (
            {"podClasses": {"user": {"match": {"namespaceSelector": {}}}}},
            "podClasses.user.match.namespaceSelector: found {}, expected nothing",
        ),
        (
            {"podClasses": {f"c{number}": {"match": {"labels": {"a": str(number)}}} for number in range(MAX_CLASSES)}},
            f"expected at most {MAX_CLASSES} classes",
        ),
    ],
)
def test_a_document_that_reaches_beyond_its_hub_is_refused(changes: dict[str, object], fault: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(changes)
    assert fault in str(refused.value)


def test_choices_that_multiply_without_end_are_refused_before_they_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def options(count: int) -> dict[str, object]:
        choices = {name: {"kubespawner_override": {"node_selector": {name: name}}} for name in "ab"}
        profile = {"profile_options": {f"o{number}": {"choices": choices} for number in range(count)}}
        return {"singleuser": {"image": {}, "profileList": [profile]}}

    assert read(options(4)).settings.classes
    monkeypatch.setattr("roost_core.placement.hub_documents.parse_settings", lambda *_: pytest.fail("was read"))
    with pytest.raises(SettingsError, match=r"singleuser\.profileList: .* at most 20000 combinations"):
        read(options(40))


def test_a_class_whose_profile_the_central_scheduler_lacks_keeps_the_clusters_scheduler() -> None:
    rules = read({"podClasses": {"user": {"profile": "gpu"}}})
    rulebook = Rulebook(rules.settings)
    assert rulebook.rules["user"].scheduler_name == ""
    assert rulebook.rules["build"].scheduler_name == "roost.roost-system.build"
    assert rules.lost_profiles == {"user": "gpu"}


def test_without_a_central_scheduler_no_pod_names_one() -> None:
    rules = read({}, owner=central(schedulerTarget="none"))
    assert {each.scheduler_name for each in Rulebook(rules.settings).rules.values()} == {""}


def test_the_leases_are_the_hubs_controllers_alone() -> None:
    rules = read({"leases": {"controllers": "mine", "scheduler": "a-lease-of-my-own"}})
    assert rules.settings.leases == {"controllers": "mine"}


@given(
    release=st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,8}){0,2}", fullmatch=True),
    other=st.from_regex(r"[a-z]{1,8}", fullmatch=True),
)
def test_no_release_name_gives_a_hub_the_labels_of_another_namespace(release: str, other: str) -> None:
    text = json.dumps(document(release=release)).encode()
    rulebook = Rulebook(read_hub_rules(text, "hub-a", central()).settings)
    gated = rulebook.gated(IMAGE)
    assert gated is not None
    assert gated.label.partition("/")[0].endswith(".hub-a.hub.jupyter.org")
    assert gated.label != pulled_label(release, other, IMAGE)
