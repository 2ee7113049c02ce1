"""The policy document: what it may hold, and that all its faults come at once."""

import json
from hashlib import sha256

import pytest

from roost_core.release.image_gate import GateMode
from roost_core.release.reader import SettingsError
from tests.builders import merged, policy_document, settings
from tests.recorded_data import rows
from webhook.webhook_settings import parse_settings, read_settings


def test_the_revision_is_the_head_of_the_documents_hash() -> None:
    text = json.dumps(policy_document()).encode()
    assert read_settings(text).revision == sha256(text).hexdigest()[:12]


def faults(**changes: object) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        parse_settings(policy_document(**changes))
    return [fault.key for fault in caught.value.faults]


def test_all_faults_come_at_once_and_name_their_keys() -> None:
    build: dict[str, dict[str, object]] = {
        "home": {"weights": [50, 100]},
        "resources": {"nvidia.com/gpu": 1, "cpu": "much", "hugepages-2Mi": "4Mi"},
    }
    user = {"join": {"user": 101, "nobody": 1}, "match": {"labels": {}}}
    classes = {"user": user, "build": build, "placeholder": {"match": {"labels": None}}}
    found = faults(
        version=2, scheduler={"target": None}, imageGate={"mode": "maybe"}, podClasses=classes
    )
    assert set(found) == {
        *("version", "scheduler.target", "imageGate.mode"),
        *(f"podClasses.user.join.{key}" for key in ("user", "nobody")),
        *(f"podClasses.build.home.{key}" for key in ("weights",)),
        *(f"podClasses.build.resources.{key}" for key in build["resources"]),
        "podClasses.placeholder.match.labels",
    }


def test_a_fault_says_what_was_found_and_what_is_accepted() -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(policy_document(podClasses={"user": {"join": {"user": 250}}}))
    assert (
        str(caught.value)
        == "podClasses.user.join.user: found 250, expected a whole number from 1 to 100."
    )


@pytest.mark.parametrize("term", rows("roost_core/terms-refused"))
def test_a_node_term_that_would_make_pods_invalid_is_refused(term: object) -> None:
    found = faults(podClasses={"user": {"preferredNodeTerms": [term]}})
    assert any(key.startswith("podClasses.user.preferredNodeTerms[0]") for key in found)


@pytest.mark.parametrize("document", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 100_000])
def test_what_is_no_document_is_a_fault_and_nothing_else(document: bytes) -> None:
    with pytest.raises(SettingsError):
        read_settings(document)


def test_null_and_absent_are_the_same() -> None:
    rules = settings(
        podClasses={
            "user": {"join": None, "preferredNodeTerms": None, "resources": None, "home": None}
        }
    )
    user = rules.classes["user"]
    assert (user.join, user.preferred_node_terms, user.resources, user.home) == ({}, (), {}, None)


def test_a_gate_that_yaml_read_as_false_is_off() -> None:
    assert settings(imageGate={"mode": False}).gate.mode is GateMode.OFF


def test_a_newer_charts_top_level_keys_are_passed_over() -> None:
    assert parse_settings(merged(policy_document(), {"fromTheFuture": {"x": 1}}))
