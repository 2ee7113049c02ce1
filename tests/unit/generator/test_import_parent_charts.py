"""A hub below a parent chart, several hubs in one file, layers."""

import pytest

from generator.faults import ValuesError
from generator.importing.importer import import_layers
from tests.recorded_data import rows
from tests.unit.generator.imported_hubs import fault_of, hub, imported, placeholder, unmapped, value


def test_a_hub_under_a_parent_chart_is_found_and_its_keys_are_named_in_full() -> None:
    result = imported(hub("basehub"), "staging")
    assert result.values["replaceSchedulers"] == ["staging-user-scheduler"]
    assert placeholder(result)["resources"] == {"requests": {"memory": "256Mi"}}
    assert result.switch_off == [
        "basehub.jupyterhub.scheduling.userScheduler.enabled: false",
        "basehub.binderhub-service.config.KubernetesBuildExecutor.sticky_builds: false",
    ]
    # Both default labels are replaced.
    assert value(result, "podClasses.build.home.builders.labels") == {
        "app.kubernetes.io/name": "binderhub-service",
        "app.kubernetes.io/component": "docker-api",
    }
    assert list(unmapped(result)) == [
        "basehub.nodePlaceholder",
        "basehub.binderhub-service.dockerApi.nodeSelector",
    ]


SEVERAL = (
    "one: {jupyterhub: {singleuser: {}}}\ntwo: {jupyterhub: {scheduling: {userPlaceholder:"
    " {replicas: 7}}}}\n"
)


def test_several_hubs_in_one_file_are_a_fault_that_says_how_to_choose() -> None:
    said = fault_of(SEVERAL)
    assert (
        "found 2 hubs: one.jupyterhub (hub.yaml) and two.jupyterhub (hub.yaml), expected one hub"
        in said
    )
    assert "--hub one.jupyterhub" in said
    chosen = import_layers([("hub.yaml", SEVERAL)], hub="two.jupyterhub")
    assert placeholder(chosen)["replicas"] == 7
    with pytest.raises(
        ValuesError, match=r"no values below jupyterhub, expected one.jupyterhub or two.jupyterhub"
    ):
        import_layers([("hub.yaml", SEVERAL)], hub="jupyterhub")


BASEHUB_DEFAULTS = (
    "jupyterhub: {scheduling: {userScheduler: {enabled: false}}, singleuser: {memory: {guarantee:"
    " 256M}}}\n"
)


@pytest.mark.parametrize(("nested", "key"), rows("generator/other-defaults"))
def test_defaults_of_another_chart_are_not_taken_for_the_hub(nested: str, key: str) -> None:
    with pytest.raises(ValuesError) as caught:
        import_layers([("basehub.yaml", BASEHUB_DEFAULTS), ("hub.yaml", nested)])
    said = str(caught.value)
    assert f"{key} (hub.yaml)" in said
    assert "jupyterhub (basehub.yaml)" in said
    assert "helm get values RELEASE --all" in said
    chosen = said.rpartition("--hub ")[2].removesuffix(".")
    assert import_layers([("basehub.yaml", BASEHUB_DEFAULTS), ("hub.yaml", nested)], hub=chosen).hub


def test_later_layers_win_as_with_helm_and_notes_name_the_layer() -> None:
    result = import_layers(
        [
            (
                "common.yaml",
                (
                    "jupyterhub:\n  scheduling:\n    userPlaceholder: {replicas: 2, extraPodSpec:"
                    " {a: 1}}\n"
                ),
            ),
            (
                "prod.yaml",
                (
                    "jupyterhub:\n  scheduling:\n    userPlaceholder:\n      replicas: 8\n   "
                    " other: 1\n"
                ),
            ),
        ]
    )
    assert placeholder(result)["replicas"] == 8
    assert [(note.file, note.line) for note in result.unmapped] == [
        ("common.yaml", 3),
        ("prod.yaml", 5),
    ]
