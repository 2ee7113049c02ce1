"""Whatever somebody writes as a hub's document gives settings or SettingsError, within bounds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.hub_settings import read_hub_settings
from roost_core.placement.hub_documents import MAX_HUB_BYTES, MAX_PLACEHOLDER_SETS, TOO_LARGE, read_hub_rules
from roost_core.placement.settings_reader import MAX_DEPTH, MAX_FAULTS, Reader, SettingsError, load_document
from tests.builders import merged, policy_document, settings
from tests.unit.controllers.test_served_hubs import document as controllers_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CENTRAL: Final = ("roost", "roost-system")
RULES: Final = settings(release=CENTRAL[0], namespace=CENTRAL[1], schedulerProfiles={"user": {}})
TERM: Final = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
PROFILE: Final = {
    "kubespawner_override": {
        "image": "a:b",
        "node_selector": {"a": "b"},
        "tolerations": [{"key": "a"}],
        "node_affinity_required": [TERM],
        "extra_resource_limits": {"a/b": 1},
    },
    "profile_options": {"x": {"choices": {"a": {"kubespawner_override": {"image": "c:d"}}}}},
}
OURS: Final = {"central": {"release": CENTRAL[0], "namespace": CENTRAL[1]}, "namespace": "evil"}
BODY: Final = {
    **OURS,
    "singleuser": {"profileList": [PROFILE]},
    "podClasses": {"user": {"preferredNodeTerms": [{"weight": 1, "preference": TERM}]}},
}
WINDOW: Final = {"name": "a", "start": "0 8 * * 1-5", "end": "0 9 * * 1-5", "timeZone": "UTC", "replicas": 2}
LEARN: Final = {"quantile": 0.9, "min": 0, "max": 5, "bootSeconds": 60, "timeZone": "UTC"}


def rules_document() -> dict[str, Any]:
    shared = {"matchLabels": {"a": "b"}, **TERM}
    return policy_document(**BODY, release="hub", sharedNamespaces=shared)


def controllers_settings() -> dict[str, Any]:
    made = merged(controllers_document(), BODY)
    made["placeholders"][0] |= {"windows": [WINDOW], "learn": LEARN, "requiredNodeTerms": [TERM]}
    return made


def read_rules(text: bytes) -> object:
    return read_hub_rules(text, "evil", RULES)


def read_controllers(text: bytes) -> object:
    return read_hub_settings(text, "evil", CENTRAL, None, 37)


READERS: Final = {
    "policy.json": (read_rules, rules_document()),
    "controllers.json": (read_controllers, controllers_settings()),
}
BOTH: Final = pytest.mark.parametrize("name", READERS)

ODD: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**40, 10**400, float("nan"), float("inf"), 1e300, "\ud800", "x/y/z", "{", "a" * 70])
    | st.floats()
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.just("\udfff"), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to all values within one."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], by: object) -> Any:
    """A copy with another value at one place."""
    if not path:
        return by
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], by)
    return copy


def accepts(read: Callable[[bytes], object], document: object) -> bool:
    try:
        read(json.dumps(document).encode())
    except SettingsError:
        return False
    return True


@BOTH
def test_the_documents_of_these_tests_are_good(name: str) -> None:
    read, document = READERS[name]
    assert accepts(read, document)


@BOTH
@given(document=ODD)
def test_any_json_gives_settings_or_a_settings_error(name: str, document: object) -> None:
    assert not accepts(READERS[name][0], document)


@BOTH
@given(data=st.data())
def test_any_value_at_any_place_gives_settings_or_a_settings_error(name: str, data: st.DataObject) -> None:
    read, document = READERS[name]
    path = data.draw(st.sampled_from(list(places(document))))
    accepts(read, replaced(document, path, data.draw(ODD)))


@BOTH
@pytest.mark.parametrize("odd", [[], {}, None, 1, True, ["In"]])
def test_an_operator_of_any_type_is_a_fault(name: str, odd: object) -> None:
    read, document = READERS[name]
    path = ("podClasses", "user", "preferredNodeTerms", 0, "preference", "matchExpressions", 0, "operator")
    assert not accepts(read, replaced(document, path, odd))


@BOTH
@pytest.mark.parametrize(
    "text", [b'{"a": NaN}', b'{"a": 1e999}', b'{"a": "\\ud800"}', b'{"a": "\xed\xa0\x80"}', b"\xff{}"]
)
def test_what_no_other_program_could_read_is_refused(name: str, text: bytes) -> None:
    with pytest.raises(SettingsError, match="invalid JSON"):
        READERS[name][0](text)


def test_depth_is_bounded() -> None:
    def nested(depth: int) -> bytes:
        return b'{"a": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"

    assert load_document(nested(MAX_DEPTH))
    with pytest.raises(SettingsError, match=f"at most {MAX_DEPTH} levels"):
        load_document(nested(MAX_DEPTH + 1))


@BOTH
def test_documents_beyond_the_bound_are_not_parsed(name: str) -> None:
    for text in (b"[" * (MAX_HUB_BYTES + 1), TOO_LARGE):
        with pytest.raises(SettingsError, match=f"at most {MAX_HUB_BYTES} bytes"):
            READERS[name][0](text)


@BOTH
def test_placeholder_sets_are_bounded(name: str) -> None:
    read, document = READERS[name]
    one = document["placeholders"][0]
    one = (
        {key: value for key, value in one.items() if key not in ("windows", "learn")} if isinstance(one, dict) else one
    )
    assert accepts(read, {**document, "placeholders": [one] * MAX_PLACEHOLDER_SETS})
    assert not accepts(read, {**document, "placeholders": [one] * (MAX_PLACEHOLDER_SETS + 1)})


def test_no_more_faults_are_described_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[object] = []

    def describe(found: object) -> str:
        described.append(found)
        return "something"

    monkeypatch.setattr("roost_core.placement.settings_reader.describe", describe)
    with pytest.raises(SettingsError) as refused:
        read_rules(json.dumps({**rules_document(), "replaceSchedulers": [1] * 100_000}).encode())
    assert len(refused.value.faults) == MAX_FAULTS + 1
    assert str(refused.value.faults[-1]).startswith("and more: ")
    assert len(described) == MAX_FAULTS + 1
    assert len(refused.value.one_line()) == 500


def test_equal_faults_are_kept_once_and_counted_each() -> None:
    read = Reader()
    for _ in range(3):
        read.fault("a", 1, "a text")
    assert [str(fault) for fault in read.faults] == ["a: found 1, expected a text."]
    assert read.count == 3
    read.fault("k" * 1000, 1, "a text")
    assert len(read.faults[1].key) == 500
