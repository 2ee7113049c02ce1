"""Values files and `--set` are read as Helm reads them: a chart that only prints its values says
what Helm read.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.faults import GeneratorError
from generator.values.loader import load
from generator.values.merge import SetOptions, merge_values
from generator.values.sources import LoadedFile, Source
from tests.parity.renderers import HelmError, run_helm
from tests.recorded_data import rows

DEFAULTS = """
number: 1
text: plain
nothing: null
map: {a: 1, b: {c: 2, d: null}, list: [1, 2]}
list: [{x: 1}, {y: 2}]
"""


@pytest.fixture(scope="session")
def echo_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chart = tmp_path_factory.mktemp("echo")
    (chart / "templates").mkdir()
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: echo, version: 0.1.0}")
    (chart / "values.yaml").write_text(DEFAULTS)
    (chart / "templates" / "values.yaml").write_text("values: {{ toJson (toJson .Values) }}\n")
    return chart


def by_helm(helm: Path, chart: Path, *arguments: str) -> Any:
    output = run_helm(helm, "template", "r", str(chart), *arguments)
    return json.loads(yaml.safe_load(output)["values"], parse_int=float)


def by_roost(chart: Path, files: Sequence[Path] = (), options: SetOptions | None = None) -> Any:
    defaults = load((chart / "values.yaml").read_bytes(), "values.yaml")
    merged = merge_values(
        defaults, [load(file.read_bytes(), file.name) for file in files], options or SetOptions()
    )
    # Both as floats, as numbers in JSON are: Go prints 2^63 with other digits than Python.
    return json.loads(json.dumps(merged.values), parse_int=float)


PLAIN_SCALARS = rows("parity/plain-scalars")[0].split()


def test_plain_scalars_are_read_as_helm_reads_them(
    helm: Path, echo_chart: Path, tmp_path: Path
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("scalars:\n" + "".join(f"  - {scalar}\n" for scalar in PLAIN_SCALARS))
    ours, theirs = by_roost(echo_chart, [file]), by_helm(helm, echo_chart, "-f", str(file))
    for scalar, our, their in zip(PLAIN_SCALARS, ours["scalars"], theirs["scalars"], strict=True):
        assert (our, type(our) is bool) == (their, type(their) is bool), scalar


def test_plain_scalars_as_keys_are_read_as_helm_reads_them(
    helm: Path, echo_chart: Path, tmp_path: Path
) -> None:
    file = tmp_path / "values.yaml"
    # Helm has no word for unsigned keys, and cuts long ones; a null key and a merge of a number are
    # faults for both.
    refused = {
        "~", "null", "Null", "NULL",
        "<<",
        "9223372036854775808", "-9223372036854775809",
        "18446744073709551615", "18446744073709551616", "-18446744073709551615",
        "123456789012345678901234567890",
        "1234567.125",
    }  # fmt: skip
    lines = "".join(
        f"- {{{scalar}: 1}}\n"
        for scalar in PLAIN_SCALARS
        if scalar not in refused and "," not in scalar
    )
    file.write_text(f"keys:\n{lines}")
    assert by_roost(echo_chart, [file]) == by_helm(helm, echo_chart, "-f", str(file))


FILES = dict(rows("parity/values-files"))


@pytest.mark.parametrize("name", FILES)
def test_a_values_file_is_read_as_helm_reads_it(
    name: str, helm: Path, echo_chart: Path, tmp_path: Path
) -> None:
    file = tmp_path / "values.yaml"
    file.write_bytes(FILES[name].encode())
    assert by_roost(echo_chart, [file]) == by_helm(helm, echo_chart, "-f", str(file))


@pytest.mark.parametrize(("first", "second"), rows("parity/two-values-files"))
def test_two_values_files_are_merged_as_helm_merges_them(
    first: str, second: str, helm: Path, echo_chart: Path, tmp_path: Path
) -> None:
    files = [tmp_path / "first.yaml", tmp_path / "second.yaml"]
    for file, content in zip(files, (first, second), strict=True):
        file.write_text(content)
    assert by_roost(echo_chart, files) == by_helm(
        helm, echo_chart, "-f", str(files[0]), "-f", str(files[1])
    )


def read_by_roost(flag: str, setting: str, chart: Path) -> Any:
    options = SetOptions(values=[setting]) if flag == "--set" else SetOptions(json_values=[setting])
    return outcome(lambda: by_roost(chart, (), options))


@pytest.mark.parametrize(("flag", "setting"), rows("parity/flags"))
def test_what_a_flag_sets_is_what_helm_makes_of_it(
    flag: str, setting: str, helm: Path, echo_chart: Path
) -> None:
    theirs = outcome(lambda: by_helm(helm, echo_chart, flag, setting))
    assert read_by_roost(flag, setting, echo_chart) == theirs


@pytest.mark.parametrize(("flag", "setting"), rows("parity/flags-refused"))
def test_a_flag_sets_one_key(flag: str, setting: str, echo_chart: Path) -> None:
    assert read_by_roost(flag, setting, echo_chart) == "refused"


def outcome(read: Any) -> Any:
    try:
        return read()
    except (GeneratorError, HelmError):
        return "refused"


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=8),
)
_KEYS = st.sampled_from(["number", "text", "nothing", "map", "list", "a", "b", "c", "d", "x"])
_DOCUMENTS = st.dictionaries(
    _KEYS,
    st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    ),
    max_size=5,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(first=_DOCUMENTS, second=_DOCUMENTS)
def test_any_two_documents_are_read_and_merged_as_helm_does(
    first: dict[str, object],
    second: dict[str, object],
    helm: Path,
    echo_chart: Path,
    tmp_path: Path,
) -> None:
    files = [tmp_path / "first.yaml", tmp_path / "second.yaml"]
    for file, values in zip(files, (first, second), strict=True):
        file.write_text(json.dumps(values, ensure_ascii=False))
    assert by_roost(echo_chart, files) == by_helm(
        helm, echo_chart, "-f", str(files[0]), "-f", str(files[1])
    )


def test_merging_leaves_the_arguments_alone() -> None:
    defaults = LoadedFile({"map": {"a": 1}}, Source("defaults"))
    file = LoadedFile({"map": {"b": [1]}}, Source("file"))
    merged = merge_values(defaults, [file], SetOptions(['map.c={"d": 4}'], ["map.a=2"]))
    assert merged.values == {"map": {"a": 2, "b": [1], "c": {"d": 4}}}
    assert (defaults.values, file.values) == ({"map": {"a": 1}}, {"map": {"b": [1]}})
