"""Files that are no values, and text that has to survive printing."""

from pathlib import Path

import pytest

from generator.importing.importer import import_layers
from generator.values.loader import load
from tests.unit.generator.imported_hubs import fault_of
from tools import try_import


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "a list"),
        ("just text", "just text"),
        ("a: [", "hub.yaml:"),
        ("hub:\n\tconfig: 1\n", "hub.yaml:2"),
        ("hub: {}\nhub: {}\n", "key twice"),
        (b"\xff\xfe\x00a", "UTF-8"),
        ("apiVersion: v2\nname: x\n", "no key of a hub"),
        ("jupyterhub: ENC[x]\nsops: {mac: 'ENC[y]'}\n", "SOPS"),
        ("a: &a [*a]\n", "alias"),
    ],
)
def test_what_is_no_values_file_is_a_fault_that_names_the_file(text: str | bytes, said: str) -> None:
    fault = fault_of(text)
    assert said in fault
    assert "hub.yaml" in fault


def test_no_text_of_the_file_breaks_out_of_a_comment_or_a_line_of_the_report() -> None:
    layer = ("a\nreplaceSchedulers: [evil]", 'scheduling: {"x\\nreplaceSchedulers: [evil]": 1}')
    result = import_layers([layer], "r\nadmission: {mode: none}")
    printed = load(result.to_yaml().encode(), "printed").values
    assert printed == result.values
    assert "evil" not in str(printed)
    assert all("evil" not in line or line.startswith("a\\u000a") for line in result.report().splitlines())


def test_the_tool_that_tries_a_folder_tells_wrong_usage_from_a_bad_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hub.yaml").write_text("singleuser: {memory: {guarantee: 2G}}\n")
    assert try_import.main([]) == try_import.main([str(tmp_path / "none")]) == 2
    assert "usage" in capsys.readouterr().err
    assert try_import.main([str(tmp_path)]) == 0
    assert "1 files: 1 imported, 1 valid" in capsys.readouterr().out
