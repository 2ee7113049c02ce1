"""Values files and `--set` are read as Helm reads them: a chart that only prints its values says what Helm read."""

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
from generator.values.merge import Settings, merge_values
from generator.values.sources import LoadedFile, Source
from tests.parity.renderers import HelmError, run_helm

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


def by_roost(chart: Path, files: Sequence[Path] = (), options: Settings | None = None) -> Any:
    defaults = load((chart / "values.yaml").read_bytes(), "values.yaml")
    merged = merge_values(defaults, [load(file.read_bytes(), file.name) for file in files], options or Settings())
    # Both as floats, as numbers in JSON are: Go prints 2^63 with other digits than Python.
    return json.loads(json.dumps(merged.values), parse_int=float)


PLAIN_SCALARS = [
    scalar
    for line in """
y Y yes Yes YES yEs n N no No NO on On ON off Off OFF true True TRUE tRue false False FALSE ~ null Null NULL nULL
0 -0 +0 1 +1 -1 007 017 -017 08 09 0o17 0O17 0x1F 0X1f -0x1F 0b101 -0b101 0B11 0o8 0xg 1_000 _1 1_ 1__0 0_7 0x_f
9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
18446744073709551615 18446744073709551616 -18446744073709551615 123456789012345678901234567890 00 0.0 -0.0
1.0 1. .5 -.5 +.5 . .. 1.5 1e3 1E3 1e+3 1e-3 1.5e3 .5e3 1e 1e400 -1e400 1e-400 1_0.5 .5_0 1.e3 1e21 1e20 1e-7 123e-9
12:30:00 1:30 2001-01-01 2001-1-1 2001-12-14t21:59:43.10-05:00 20010101 1.2.3 0x 0b 0o + -- +- 1- 1+1 =
Infinity inf nan .Inf_ << <<x a!b x#y 1,5 1/2 50% 10m 1Gi 1e3Mi v1.2 0.1 100.0 4.35 1e22 1234567.125
""".splitlines()
    for scalar in line.split()
]


def test_plain_scalars_are_read_as_helm_reads_them(helm: Path, echo_chart: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("scalars:\n" + "".join(f"  - {scalar}\n" for scalar in PLAIN_SCALARS))
    ours, theirs = by_roost(echo_chart, [file]), by_helm(helm, echo_chart, "-f", str(file))
    for scalar, our, their in zip(PLAIN_SCALARS, ours["scalars"], theirs["scalars"], strict=True):
        assert (our, type(our) is bool) == (their, type(their) is bool), scalar


def test_plain_scalars_as_keys_are_read_as_helm_reads_them(helm: Path, echo_chart: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    # Helm has no word for unsigned keys; a null key and a merge of a number are faults for both.
    refused = {"~", "null", "Null", "NULL", "<<", "9223372036854775808", "18446744073709551615"}
    lines = "".join(f"- {{{scalar}: 1}}\n" for scalar in PLAIN_SCALARS if scalar not in refused and "," not in scalar)
    file.write_text(f"keys:\n{lines}")
    assert by_roost(echo_chart, [file]) == by_helm(helm, echo_chart, "-f", str(file))


FILES = {
    "empty": "",
    "only a comment": "# nothing\n",
    "null": "null\n",
    "byte order mark": "\ufeffa: 1\n",
    "document start": "---\na: 1\n",
    "carriage returns": "a: 1\r\nb: x\r\n",
    "anchors": "a: &a {x: 1, y: {z: 1}}\nb: *a\nc: {<<: *a, x: 2}\nd: {x: 3, <<: *a}\ne: {<<: [*a, {x: 9, q: 1}]}\n",
    "merge replaces nested maps": "a: &a {x: {p: 1}}\nb: {<<: *a, x: {q: 1}}\n",
    "tags": "a: !!str 1\nb: !!int '3'\nc: !!float 3\nd: !!bool 'yes'\ne: !!null ''\nf: !!binary aGVsbG8=\n",
    "quoted": "a: 'yes'\nb: \"1e3\"\nc: 'it''s'\nd: \"\\u00e9\\n\\t\\\"\"\n",
    "blocks": "a: |\n  one\n  two\nb: >-\n  one\n  two\nc: |+\n  x\n\nd: |2\n    y\n",
    "null deletes a default": "number: null\nmap: {a: null, b: {c: null}}\n",
    "null where the default is null": "nothing: null\nmap: {b: {d: null}}\n",
    "null without a default": "new: null\nmap: {new: null}\n",
    "map over text": "text: {a: 1}\n",
    "text over a map": "map: plain\n",
    "list over a list": "list: [1]\nmap: {list: []}\n",
    "empty map over a map": "map: {}\n",
    "long key": f"? {'k' * 200}\n: 1\n",
    "unicode": "é: ü\n'😀': 日本\n",
    "flow": "{a: [1, {b: c}], d: {}}\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_values_file_is_read_as_helm_reads_it(name: str, helm: Path, echo_chart: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_bytes(FILES[name].encode())
    assert by_roost(echo_chart, [file]) == by_helm(helm, echo_chart, "-f", str(file))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{map: {a: 5}, list: [1]}", "{map: {b: {c: 7}}, list: []}"),
        ("{map: null}", "{map: {a: 9}}"),
        ("{map: {a: 9}}", "{map: null}"),
        ("{map: {b: null}}", "{map: {b: {e: 1}}}"),
        ("{number: null}", "{number: 3}"),
        ("{text: {deep: 1}}", "{text: {deeper: 2}}"),
    ],
)
def test_two_values_files_are_merged_as_helm_merges_them(
    first: str, second: str, helm: Path, echo_chart: Path, tmp_path: Path
) -> None:
    files = [tmp_path / "first.yaml", tmp_path / "second.yaml"]
    for file, content in zip(files, (first, second), strict=True):
        file.write_text(content)
    assert by_roost(echo_chart, files) == by_helm(helm, echo_chart, "-f", str(files[0]), "-f", str(files[1]))


SETTINGS = r"""
a=1 a=01 a=0 a=-5 a=+5 a=1.5 a=1e3 a=true a=TRUE a=null a=Null a= a=yes a="x" a='x' a=x\,y a\.b=1 a.b.c=1 a=b=c
map.a=null map.b=null map=null map.b.c=null number=null text.b=1 list.x=1 a.b\.c\,d\\.e=\.\\ nothing.x=1 nothing=1
a a[x]=1 a[-1]=1 a={x a[65537]=1 a,b=1 a=99999999999999999999 a=9223372036854775807 a=1_000
a=-9223372036854775808 a=9223372036854775808 a\[0]=1
"""
JSON_SETTINGS = """
a={"b": [1, 2.5, null]}
a=null
map={"a": null}
map.b.c=[{"x,y": "]"}]
a=nope
a=NaN
a=1e400
"""
# Helm reads more of it than one key: there is a plainer way to say it.
REFUSED = [("--set", one) for one in ["a={x,y}", "list[0]=9", "a=1,b=2", "a=1,", "=1", ".a=1", "a.", "a=\\"]] + [
    ("--set-json", one) for one in ("list[0]=7", "a=[1],b=3", "a=[1] b=2", '{"map": {"a": 3}}', "a=")
]


def read_by_roost(flag: str, setting: str, chart: Path) -> Any:
    options = Settings(values=[setting]) if flag == "--set" else Settings(json_values=[setting])
    return outcome(lambda: by_roost(chart, (), options))


@pytest.mark.parametrize(
    ("flag", "setting"),
    [("--set", one) for one in SETTINGS.split()] + [("--set-json", one) for one in JSON_SETTINGS.strip().splitlines()],
)
def test_what_a_flag_sets_is_what_helm_makes_of_it(flag: str, setting: str, helm: Path, echo_chart: Path) -> None:
    theirs = outcome(lambda: by_helm(helm, echo_chart, flag, setting))
    assert read_by_roost(flag, setting, echo_chart) == theirs


@pytest.mark.parametrize(("flag", "setting"), REFUSED)
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
    st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3)),
    max_size=5,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=_DOCUMENTS, second=_DOCUMENTS)
def test_any_two_documents_are_read_and_merged_as_helm_does(
    first: dict[str, object], second: dict[str, object], helm: Path, echo_chart: Path, tmp_path: Path
) -> None:
    files = [tmp_path / "first.yaml", tmp_path / "second.yaml"]
    for file, values in zip(files, (first, second), strict=True):
        file.write_text(json.dumps(values, ensure_ascii=False))
    assert by_roost(echo_chart, files) == by_helm(helm, echo_chart, "-f", str(files[0]), "-f", str(files[1]))


def test_merging_leaves_the_arguments_alone() -> None:
    defaults = LoadedFile({"map": {"a": 1}}, Source("defaults"))
    file = LoadedFile({"map": {"b": [1]}}, Source("file"))
    merged = merge_values(defaults, [file], Settings(['map.c={"d": 4}'], ["map.a=2"]))
    assert merged.values == {"map": {"a": 2, "b": [1], "c": {"d": 4}}}
    assert (defaults.values, file.values) == ({"map": {"a": 1}}, {"map": {"b": [1]}})
