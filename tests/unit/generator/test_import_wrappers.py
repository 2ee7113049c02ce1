"""A hub's values are found in whatever installs its chart, or that is refused by name: an empty hub
is never imported.
"""

import pytest

from generator.faults import ValuesError
from generator.importing.importer import import_layers
from tests.recorded_data import HUBS, rows


@pytest.mark.parametrize(("text", "line"), rows("generator/wrapped-hubs"))
def test_values_are_read_where_they_stand_and_the_release_beside_them(text: str, line: int) -> None:
    result = import_layers([("hub.yaml", text)])
    assert [(note.line, note.key.rpartition(".")[2]) for note in result.unmapped] == [(line, "tag")]
    assert result.values["replaceSchedulers"] == ["lab-user-scheduler"]
    assert not [note for note in result.notes if "isn't read here" in note]


@pytest.mark.parametrize(("text", "found", "fix"), rows("generator/files-refused-by-name"))
def test_what_is_no_hub_s_values_is_refused_by_name(text: str, found: str, fix: str) -> None:
    with pytest.raises(ValuesError) as caught:
        import_layers([("hub.yaml", text)])
    (fault,) = caught.value.faults
    assert found in fault.found
    assert fix in str(fault)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("jupyterhub_config.py", r"found Python, .* below hub\.extraConfig"),
        ("hub.tf", r"found Terraform, .*: helm get values RELEASE --all"),
        ("values.jsonnet", r"found Jsonnet, .*: helm get values RELEASE --all"),
    ],
)
def test_a_file_of_another_language_is_refused_by_its_name(name: str, said: str) -> None:
    with pytest.raises(ValuesError, match=said):
        import_layers([(name, "c = get_config()\nc.KubeSpawner.uid = 0\n")])


@pytest.mark.parametrize("name", ["fleet", "flux-documents"])
def test_a_file_as_operators_have_it_is_read(name: str) -> None:
    result = import_layers([(name, (HUBS / f"{name}.yaml").read_text())])
    assert result.values["replaceSchedulers"] == ["class-user-scheduler"]
    assert result.values["singleuser"] == {
        "image": {"name": "registry.example.org/lab", "tag": "1"},
        "memory": {"guarantee": "1G"},
    }


def test_nebaris_configuration_is_refused() -> None:
    with pytest.raises(ValuesError, match="Nebari makes the hub's values of it: helm get values"):
        import_layers([("nebari-config.yaml", (HUBS / "nebari.yaml").read_text())])


def test_an_unknown_wrapper_without_a_release_says_which_one_is_taken() -> None:
    result = import_layers([("x.yaml", "app: {values: {singleuser: {image: {name: a, tag: b}}}}")])
    assert any("--hub-release" in note for note in result.notes)
