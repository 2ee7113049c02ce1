"""`roost import` of files that are no values, sections of a wrong shape, what nothing carries, text
that breaks out.
"""

from pathlib import Path

import pytest

from generator.importing.importer import import_layers
from generator.values.loader import load
from generator.values.lookups import mapping
from tests.recorded_data import rows
from tests.unit.generator.imported_hubs import fault_of, imported, value
from tools import try_import


@pytest.mark.parametrize(("text", "said"), rows("generator/lone-sections"))
def test_a_lone_section_of_a_wrong_shape_is_a_fault_that_says_so(text: str, said: str) -> None:
    fault = fault_of(text)
    assert said in fault
    assert "Write the section's keys below it" in fault


@pytest.mark.parametrize(("text", "key", "kind"), rows("odd-sections"))
def test_a_section_of_a_wrong_shape_is_named_once_beside_what_is_read(
    text: str, key: str, kind: str
) -> None:
    beside = "" if "singleuser" in text else "singleuser: {image: {name: a/b, tag: '1'}}\n"
    result = imported(f"{beside}proxy: {{}}\ncull: {{}}\n{text}\n")
    (note,) = [note for note in result.unmapped if note.key == key]
    assert (note.file, note.line, note.value_kind) == ("hub.yaml", 4 if beside else 3, kind)
    assert note.reason.startswith(f"expected a mapping, found a {kind}")
    assert "Write its keys below it" in note.reason


@pytest.mark.parametrize(("text", "key", "whose"), rows("other-charts"))
def test_another_charts_values_are_refused_by_name(text: str, key: str, whose: str) -> None:
    fault = fault_of(text)
    assert f"hub.yaml:{key}: found" in fault
    assert whose in fault
    assert "expected values of zero-to-jupyterhub or BinderHub" in fault


@pytest.mark.parametrize("name", ["hub", "proxy", "cull"])
def test_a_key_that_other_charts_have_too_is_not_said_to_be_missing(name: str) -> None:
    fault = fault_of(f"{name}: {{}}\n")
    assert f"found {name} alone" in fault
    assert "no key of a hub" not in fault
    assert "singleuser: {}" in fault


@pytest.mark.parametrize(
    ("text", "said"), [*rows("generator/hubs-unreadable"), (b"\xff\xfe\x00a", "UTF-8")]
)
def test_what_is_no_values_file_is_a_fault_that_names_the_file(
    text: str | bytes, said: str
) -> None:
    fault = fault_of(text)
    assert said in fault
    assert "hub.yaml" in fault


def test_no_text_of_the_file_breaks_out_of_a_comment_or_a_line_of_the_report() -> None:
    layer = ("a\nreplaceSchedulers: [evil]", 'scheduling: {"x\\nreplaceSchedulers: [evil]": 1}')
    result = import_layers([layer], "r\nadmission: {mode: none}")
    printed = load(result.to_yaml().encode(), "printed").values
    assert printed == result.values
    assert "evil" not in str(printed)
    assert all(
        "evil" not in line or line.startswith("a\\n") for line in result.report().splitlines()
    )


def test_the_tool_that_tries_a_folder_tells_wrong_usage_from_a_bad_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hub.yaml").write_text("singleuser: {memory: {guarantee: 2G}}\n")
    assert try_import.main([]) == try_import.main([str(tmp_path / "none")]) == 2
    assert "usage" in capsys.readouterr().err
    assert try_import.main([str(tmp_path)]) == 0
    assert "1 files: 1 imported, 1 valid" in capsys.readouterr().out


def test_a_key_that_stands_twice_counts_as_helm_counts_it_and_is_named() -> None:
    text = (
        "singleuser:\n  image: {name: a/first, tag: '1'}\n  extraLabels: {a: b}\n"
        "hub: {}\nsingleuser:\n  image: {name: a/last, tag: '2'}\n"
    )
    result = import_layers([("hub.yaml", text)])
    users = mapping(result.values["singleuser"])
    assert users["image"] == {"name": "a/last", "tag": "2"}
    assert "extraLabels" not in users
    assert (
        "hub.yaml:5: warning: singleuser: the key stands twice (first on line 1). Helm reads this"
        " one alone, and so does Roost." in result.report(details=False)
    )


def test_builds_that_request_nothing_get_no_request_of_roosts() -> None:
    text = (
        "imageBuilderType: dind\nconfig: {KubernetesBuildExecutor: {resources: {requests: {memory:"
        ' "0", cpu: 200m}}}}\n'
    )
    result = imported(text)
    assert value(result, "podClasses.build.resources") == {"cpu": "200m"}
    assert not [note for note in result.unmapped if "resources" in note.key]
