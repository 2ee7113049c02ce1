"""The chart compiler: what it writes, what it refuses and how it says so; and the Python twin of
what it writes.
"""

import shutil
from pathlib import Path

import pytest

from generator.render.environment import make_environment, render_template
from generator.render.functions import (
    Chart,
    TemplateError,
    context,
    for_cluster,
    minor_for_cluster,
    to_json,
)
from generator.values.release_name import Release, kube_minor
from tests.recorded_data import object_of, rows
from tools.compile.chart import write_chart
from tools.compile.expressions import CompileError
from tools.compile.shape import Shape
from tools.compile.template import compile_template
from tools.root import ROOT

SCHEMA = object_of("schema-of-templates")
MACROS = {"_macros.yaml.j2": {"two": ["a", "b"]}}


def compiled(source: str, name: str = "x.yaml.j2") -> str:
    return compile_template(name, source, Shape.of(SCHEMA, {}), MACROS)


@pytest.mark.parametrize(("source", "line", "says"), rows("templates-refused"))
def test_what_the_two_languages_do_not_share_is_refused_with_file_and_line(
    source: str, line: int, says: str
) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(source)
    # Jinja2 itself reports an unclosed block at the end of the file.
    assert str(caught.value).startswith(f"templates/x.yaml.j2:{line}: ") or "Unexpected end" in says
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "body", ["{% if a %}\nx\n{% endif %}\ny\n", "y\n{% if a %}\nx\n{% endif %}\n"]
)
def test_a_macro_must_begin_and_end_with_text(body: str) -> None:
    with pytest.raises(CompileError, match="a macro must"):
        compiled("{% macro two(a, b) %}\n" + body + "{%- endmacro %}\n", name="_macros.yaml.j2")


def test_two_strings_are_compared() -> None:
    source = "{% if values.name == values.map.a %}\na: 1\n{% endif %}\n"
    assert compiled(source) == "{{- if eq $.Values.name $.Values.map.a }}\na: 1\n{{- end }}\n"


def test_a_macro_and_a_helper_may_not_share_a_name(tmp_path: Path) -> None:
    for folder in ("templates", "chart"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    helpers = tmp_path / "chart/templates/_names.tpl"
    helpers.write_text(helpers.read_text() + '{{- define "roost.metadata" -}}{{- end }}\n')
    says = "macro 'metadata' is in chart/templates/_names.tpl too: rename one"
    with pytest.raises(CompileError, match=says):
        write_chart(tmp_path, checks=True)


def test_writing_the_chart_mends_what_is_stale_and_nothing_else(tmp_path: Path) -> None:
    for folder in ("templates", "chart"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    service = tmp_path / "chart/templates/webhook/service.yaml"
    service.write_text(service.read_text() + "# by hand\n")
    (tmp_path / "templates/scheduler/role.yaml.j2").unlink()
    helpers = (tmp_path / "chart/templates/_helpers.tpl").read_text()
    stale = ["chart/templates/scheduler/role.yaml", "chart/templates/webhook/service.yaml"]
    assert write_chart(tmp_path, checks=True) == stale
    assert write_chart(tmp_path) == stale
    assert write_chart(tmp_path, checks=True) == []
    assert (tmp_path / "chart/templates/_helpers.tpl").read_text() == helpers
    assert not (tmp_path / "chart/templates/scheduler/role.yaml").exists()


def rendered(source: str, values: dict[str, object], folder: Path) -> str:
    (folder / "x.yaml.j2").write_text(source)
    given = context(values, Release(), Chart("0.1.0", "0.1.0"))
    return render_template(make_environment(folder), "x.yaml.j2", given)


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        (1.0, "1"),
        (-3.0, "-3"),
        (0.0, "0"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (2**53 + 1, "9007199254740992"),
        (12345678901234567890, "12345678901234567000"),
        (2500000.5, "2500000.5"),
        (5e-324, "5e-324"),
    ],
)
def test_numbers_print_as_go_prints_a_float64(number: float, printed: str) -> None:
    assert to_json(number) == printed


def test_a_missing_key_is_nil_over_which_a_loop_is_empty_and_a_key_of_nil_is_a_fault(
    tmp_path: Path,
) -> None:
    assert rendered("a: {{ values.gone | to_json }}\n", {}, tmp_path) == "a: null\n"
    source = (
        "a: [{% for x in values.gone %}x{% endfor %}{% for k, v in values.gone | items %}x{% endfor"
        " %}]\n"
    )
    assert rendered(source, {}, tmp_path) == "a: []\n"
    with pytest.raises(TemplateError, match=r"x\.yaml\.j2: key 'deeper' of nil"):
        rendered("a: {{ values.gone.deeper | to_json }}\n", {}, tmp_path)


@pytest.mark.parametrize(
    "source",
    [
        "{{ nobody }}",
        "{{ values.__class__.x }}",
        "{{ ''.join(values.l) }}",
        "{{ range(9) }}",
        "{{ values.l | map }}",
    ],
)
def test_a_template_can_reach_nothing_but_its_context(source: str, tmp_path: Path) -> None:
    with pytest.raises(TemplateError):
        rendered(source, {"l": ["a"]}, tmp_path)


def test_the_image_follows_the_clusters_minor() -> None:
    tags = {"1.9": "a", "1.34": "b", "1.36": "c"}
    versions = [kube_minor(version) for version in ("v1.8.1", "1.10", "v1.34.9-gke.1", "v1.99.0")]
    assert [for_cluster(tags, version) for version in versions] == list("aabc")
    assert for_cluster({}, (1, 36)) == ""
    assert minor_for_cluster(tags, (1, 35)) == "1.34"
    assert minor_for_cluster({}, (1, 36)) == ""
