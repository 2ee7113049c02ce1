import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator import pipeline
from generator.faults import UsageError, ValuesError
from generator.package_data import chart_folder
from generator.schema.check import find_faults
from generator.values.loader import load
from generator.values.merge import Merged, SetOptions, coalesce, merge_values
from generator.values.release_name import Release
from generator.values.sources import LoadedFile, ValueSource
from tests.builders import CHART_VALUES
from tests.recorded_data import rows
from tests.unit.generator.linted import table

SCHEMA = json.loads((chart_folder() / "values.schema.json").read_text())


def merged(text: str = "", *sets: str) -> Merged:
    return merge_values(CHART_VALUES, [load(text.encode(), "prod.yaml")], SetOptions(values=sets))


def faults(text: str = "", *sets: str) -> list[str]:
    return [str(fault) for fault in find_faults(merged(text, *sets))]


def test_every_key_of_the_defaults_is_required_where_a_null_would_break_a_template() -> None:
    missing = []

    def walk(value: object, schema: Any, path: str) -> None:
        while "$ref" in schema:
            schema = SCHEMA["definitions"][schema["$ref"].removeprefix("#/definitions/")]
        if not isinstance(value, dict) or "properties" not in schema:
            return
        for key, inner in value.items():
            if key not in schema.get("required", []) and inner is not None:
                missing.append(f"{path}{key}")
            walk(inner, schema["properties"].get(key, {}), f"{path}{key}.")

    walk(CHART_VALUES.values, SCHEMA, "")
    # Empty lists and maps there: templates read a missing one as none.
    optional = [
        r"(scheduler|webhook|controllers|recorder|prePuller|placeholder\.defaults)\.resources\.(requests|limits)",
        r"singleuser\.(cpu|memory)\.(guarantee|limit)",
    ]
    assert [path for path in missing if not any(re.fullmatch(one, path) for one in optional)] == []


TERMS = ", ".join(
    ["{weight: 1, preference: {matchExpressions: [{key: k, operator: Exists}]}}"] * 101
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *table("schema-said"),
        (
            f"podClasses: {{user: {{preferredNodeTerms: [{TERMS}]}}}}",
            "podClasses.user.preferredNodeTerms: found 101 entries, expected at most 100",
        ),
    ],
)
def test_what_would_be_refused_is_said_with_its_place_and_what_is_accepted(
    text: str, reason: str
) -> None:
    (fault,) = faults(text)
    assert reason in fault


@pytest.mark.parametrize(("text", "reason"), table("schema-gone"))
def test_of_a_key_that_is_gone_is_said_what_to_do_instead(text: str, reason: str) -> None:
    (fault,) = faults(text)
    assert fault.endswith(reason)
    assert "Did you mean" not in fault


def test_a_key_beside_one_that_is_gone_is_unknown() -> None:
    (fault,) = faults("events: {calendarUrls: []}")
    assert "found an unknown key" in fault
    (fault,) = faults("scheduler: {featureGates: {async: true}}")
    assert "Write a feature gate's name" in fault
    (fault,) = faults("podClasses: {user: {match: {labels: {attract: 5}}}}")
    assert "that is gone" not in fault


def test_the_defaults_fit_the_schema_and_a_fault_has_its_line_or_flag() -> None:
    assert find_faults(Merged(coalesce({}, CHART_VALUES.values), merged().places)) == []
    assert faults("placeholders:\n  - name: x\n    replicas: five\n")[0].startswith(
        "prod.yaml:3: placeholders[0].replicas"
    )
    assert faults("scheduler:\n  replicas: 1\n  leaderElection: null\n")[0].startswith(
        "prod.yaml:3: scheduler.leader"
    )
    (found,) = faults("", "scheduler.replicas=many")
    assert found.startswith(
        '--set scheduler.replicas=many: scheduler.replicas: found "many", expected an integer'
        " from 0"
    )


def patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        for inner in schema.values():
            yield from patterns(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from patterns(inner)


def test_patterns_mean_the_same_to_helm_and_to_python() -> None:
    for pattern in patterns(SCHEMA):
        assert pattern.startswith("^"), pattern
        assert pattern.endswith("$"), pattern
        # Lookarounds, back references and classes that Go or Python lack or read apart.
        assert not re.search(r"\(\?|\\[1-9dDwWsSbB]", pattern), pattern
        re.compile(pattern)


@pytest.mark.parametrize(("key", "shown"), rows("generator/odd-keys"))
def test_a_key_that_looks_like_an_index_or_like_nothing_is_said(key: str, shown: str) -> None:
    found = faults(f"podClasses: {{{key}: {{match: {{labels: {{a: 5}}}}}}}}")
    assert any(f"prod.yaml:1: {shown}.labels.a: found 5" in one for one in found)


@pytest.mark.parametrize(("text", "_reason"), table("schema-accepted"))
def test_what_an_operator_may_write_is_accepted(text: str, _reason: str) -> None:
    assert faults(text) == []


@pytest.mark.parametrize(("text", "_reason"), table("schema-refused"))
def test_what_can_not_be_meant_is_refused(text: str, _reason: str) -> None:
    assert faults(text) != []


def test_control_characters_are_refused_at_any_depth_of_open_values() -> None:
    values = coalesce(
        {"singleuser": {"profileList": [{"a": [{"b": "\x07"}]}]}}, CHART_VALUES.values
    )
    assert find_faults(Merged(values, merged().places)) != []


TEXTS = ["", "a", "A b", "1Gi", "on", "a.b/c", "a\n", "é"]
_VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, -1, 5, 101, 0.5, 5.0, *TEXTS]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "a", "cpu", "x y"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def changed_defaults(draw: st.DrawFn) -> dict[str, object]:
    """The defaults with one to three places replaced, removed or added."""
    values: Any = json.loads(json.dumps(coalesce({}, CHART_VALUES.values)))
    for _ in range(draw(st.integers(1, 3))):
        place = values
        while True:
            keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = draw(st.sampled_from(keys or ["new"]))
            inner = place[key] if keys else None
            if isinstance(inner, dict | list) and inner and draw(st.integers(0, 3)):
                place = inner
                continue
            break
        if isinstance(place, list):
            if keys:
                place[key] = draw(_VALUES)
        elif draw(st.booleans()):
            place[key] = draw(_VALUES)
        elif draw(st.booleans()):
            place.pop(key, None)
        else:
            place[draw(st.sampled_from(["new", "a b", "name"]))] = draw(_VALUES)
    return dict(values)


@settings(max_examples=100, deadline=None)
@given(changed_defaults())
@pytest.mark.slow
def test_every_fault_is_one_line_with_a_place_and_is_found_beside_the_lints(
    values: dict[str, object],
) -> None:
    merged_ = merge_values(CHART_VALUES, [LoadedFile(values, ValueSource("f", values))])
    faults = find_faults(merged_)
    for fault in faults:
        assert "\n" not in str(fault)
        assert fault.file
        assert fault.found
    assert set(faults) <= set(pipeline.find_faults(merged_, Release()))


def test_a_setting_on_a_list_of_the_defaults_is_the_one_at_fault() -> None:
    setting = 'placeholders=[{"replicas": 3}]'
    (fault,) = find_faults(merge_values(CHART_VALUES, [], SetOptions([setting])))
    assert str(fault).startswith(f"--set-json {setting}: placeholders[0].name: found nothing")
    assert "--set-json replaces the list" in fault.fix


def test_a_key_twice_in_json_is_refused() -> None:
    for text in ('webhook={"replicas": 1, "replicas": 2}', 'a={"b": [{"c": 1, "c": 2}]}'):
        with pytest.raises(UsageError, match="is given twice"):
            merge_values(CHART_VALUES, [], SetOptions(json_values=[text]))


def test_faults_of_the_schema_and_across_keys_come_at_once() -> None:
    text = (
        "scheduler: {replicas: 0, logLevel: high}\nplaceholders: [{name: a}]\nfoo: 1\nwebhook: 3\n"
    )
    merged_ = merge_values(CHART_VALUES, [load(text.encode(), "f")])
    found = {(fault.severity, fault.key) for fault in pipeline.find_faults(merged_, Release())}
    keys = (
        "foo",
        "placeholders[0].replicas",
        "scheduler.logLevel",
        "scheduler.replicas",
        "webhook",
    )
    assert found == {("error", key) for key in keys}
    # `render` and `diff` refuse with the same.
    with pytest.raises(ValuesError) as refused:
        pipeline.render(merged_, Release())
    assert {fault.key for fault in refused.value.faults} == set(keys)


def _unbounded(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Paths of lists, and of maps with keys of the operator's own, that may have any number of
    entries.
    """
    types = schema.get("type", ())
    types = {types} if isinstance(types, str) else set(types)
    if "array" in types and "maxItems" not in schema:
        yield path
    if (
        "object" in types
        and schema.get("additionalProperties", False) is not False
        and "maxProperties" not in schema
    ):
        yield path
    for key, value in schema.items():
        for index, part in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(part, dict):
                yield from _unbounded(part, f"{path}/{key}/{index}")


def test_every_list_and_map_of_the_values_is_bounded() -> None:
    assert list(_unbounded(SCHEMA)) == []
