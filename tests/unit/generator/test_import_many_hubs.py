"""Many hubs' values become one release's: which files are whose, what is united, and what is told
hub by hub.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.faults import ValuesError
from generator.importing.hub_folders import HubFiles, find_hubs_in, hubs_of_files
from generator.importing.importer import import_layers
from generator.importing.many_hubs import ManyHubs, import_many
from generator.render.go_json import to_json
from generator.render.managed_images import puller_groups
from generator.values.files import read_defaults
from generator.values.loader import load
from generator.values.merge import coalesce
from roost.__main__ import main
from roost.commands.hub_trial import try_import
from tests.recorded_data import HUBS, rows

Values = dict[str, Any]
PLAIN = "jupyterhub: {singleuser: {image: {name: a/b, tag: '1'}}}\n"


def write(folder: Path, **files: str) -> Path:
    """Files by name; `__` in a name stands for a folder."""
    for name, text in files.items():
        path = folder.joinpath(*name.split("__")).with_name(name.split("__")[-1] + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names(folder: Path) -> dict[str, list[str]]:
    """Hubs of a folder, each with its files' names."""
    return {
        hub.name: [name.rpartition("/")[2] for name, _ in hub.layers]
        for hub in find_hubs_in(folder)[0]
    }


def of(name: str, text: str) -> HubFiles:
    return HubFiles(name, ((f"{name}.yaml", text.encode()),))


def united(**hubs: Values) -> ManyHubs:
    return import_many(
        [of(name, yaml.safe_dump(values)) for name, values in hubs.items()], try_import
    )


def hub(image: str = "a/b:1", **singleuser: Any) -> Values:
    name, _, tag = image.rpartition(":")
    return {"singleuser": {"image": {"name": name, "tag": tag}, **singleuser}}


# Layouts: small ones of each shape that operators' repositories have.


def test_files_beside_each_other_are_hubs_below_what_they_have_in_common(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        **{"common.values": PLAIN, "physics.values": PLAIN, "biology": PLAIN, "cluster": "a: 1"},
    )
    assert names(folder) == {
        "physics": ["common.values.yaml", "physics.values.yaml"],
        "biology": ["common.values.yaml", "biology.yaml"],
    }
    assert find_hubs_in(folder)[1] == [f"{folder}/cluster.yaml: no values of a hub"]


def test_a_common_file_is_for_hubs_with_the_same_chart_above_them_or_for_its_family(
    tmp_path: Path,
) -> None:
    basehub = "basehub: {jupyterhub: {singleuser: {}}}\n"
    folder = write(
        tmp_path,
        **{"base-common": PLAIN, "dask-common": basehub, "ucm-common": PLAIN, "common-lost": PLAIN},
        **{"physics": PLAIN, "dasker": basehub, "ucm": PLAIN, "ucm-staging": PLAIN},
    )
    assert names(folder) == {
        "physics": ["base-common.yaml", "physics.yaml"],
        "dasker": ["dask-common.yaml", "dasker.yaml"],
        "ucm": ["base-common.yaml", "ucm-common.yaml", "ucm.yaml"],
        "ucm-staging": ["base-common.yaml", "ucm-common.yaml", "ucm-staging.yaml"],
    }
    assert any(
        "common-lost.yaml: nothing says which hubs it is of" in line
        for line in find_hubs_in(folder)[1]
    )


def test_folders_are_hubs_and_several_files_in_one_are_hubs_named_after_both(
    tmp_path: Path,
) -> None:
    folder = write(
        tmp_path,
        common=PLAIN,
        physics__values=PLAIN,
        biology__values=PLAIN,
        **{"biology__values-large": PLAIN, "biology__secret": PLAIN},
        history__config__common=PLAIN,
        history__config__prod=PLAIN,
        history__config__staging=PLAIN,
    )
    assert names(folder) == {
        "physics": ["common.yaml", "values.yaml"],
        "biology": ["common.yaml", "values.yaml"],
        "history-prod": ["common.yaml", "common.yaml", "prod.yaml"],
        "history-staging": ["common.yaml", "common.yaml", "staging.yaml"],
    }


def test_a_folder_without_a_hub_is_a_fault_that_says_what_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ValuesError, match=r"HUB\.values\.yaml or HUB/values\.yaml"):
        find_hubs_in(write(tmp_path, chart="name: x"))


def test_each_file_by_name_is_a_hub_called_after_it() -> None:
    hubs = hubs_of_files([("x/a.values.yaml", b""), ("b.yml", b"")])
    assert [hub.name for hub in hubs] == ["a", "b"]


# What is united


def release_of(many: ManyHubs) -> Values:
    return coalesce(many.values, read_defaults().values)


def groups_of(values: Values) -> dict[str, set[str]]:
    """Images by the nodes that pullers bring them to."""
    found: dict[str, set[str]] = {}
    for group in puller_groups(values["singleuser"], values["prePuller"]):
        tolerations = sorted(map(to_json, group.tolerations))
        found.setdefault(
            to_json([group.node_selector, tolerations, group.required_terms]), set()
        ).update(group.images)
    return found


pools = st.sampled_from([{}, {"pool": "a"}, {"pool": "b"}])
taints = st.sampled_from([[], [{"key": "gpu", "operator": "Exists"}]])
images = st.sampled_from(["a/b:1", "a/c:1", "a/c:2"])
hubs = st.builds(
    lambda image, pool, taint, other: hub(
        image,
        nodeSelector=pool,
        extraTolerations=taint,
        profileList=[
            {
                "display_name": "x",
                "kubespawner_override": {"image": other, "node_selector": {"size": "big"}},
            }
        ],
    ),
    images,
    pools,
    taints,
    images,
)


@settings(max_examples=30, deadline=None)
@given(st.lists(hubs, min_size=1, max_size=4))
def test_each_image_comes_to_the_nodes_that_it_came_to_and_no_others(each: list[Values]) -> None:
    many = united(**{f"hub-{number}": values for number, values in enumerate(each)})
    wanted: dict[str, set[str]] = {}
    for one in many.hubs:
        for nodes, found in groups_of(dict(one.values)).items():
            wanted.setdefault(nodes, set()).update(found)
    assert groups_of(release_of(many)) == wanted
    assert many.is_valid
    assert load(many.to_yaml().encode(), "printed").values == many.values


def test_placeholders_of_one_pool_and_size_are_one_set_as_large_as_the_hubs_together() -> None:
    def with_placeholders(replicas: int, pool: str) -> Values:
        return {
            **hub(nodeSelector={"pool": pool}),
            "scheduling": {"userPlaceholder": {"replicas": replicas}},
        }

    many = united(
        a=with_placeholders(3, "small"),
        b=with_placeholders(4, "small"),
        c=with_placeholders(5, "large"),
    )
    sets = {
        entry["name"]: (entry["replicas"], entry["nodeSelector"])
        for entry in many.values["placeholders"]
    }
    assert sets == {"small": (7, {"pool": "small"}), "large": (5, {"pool": "large"})}
    rows = {line.split()[0]: line for line in many.report().splitlines()}
    assert "4 of 7 shared" in rows["b"]
    assert rows["c"].split()[1:3] == ["5", "1"], "of its pool it has all"


def test_of_sets_that_learn_from_none_each_pool_has_one_in_the_size_of_most_hubs() -> None:
    # It counts all users there.
    small = hub(nodeSelector={"pool": "a"}, memory={"guarantee": "1G"})
    large = hub(nodeSelector={"pool": "a"}, memory={"guarantee": "2G"})
    many = united(a=small, b=large, c=large, d=hub(nodeSelector={"pool": "d"}))
    sets = {
        placeholder["name"]: placeholder["resources"]["requests"]["memory"]
        for placeholder in many.values["placeholders"]
    }
    assert sets == {"a": "2Gi", "d": "1Gi"}
    assert "# a: of b, c, a\n" in many.to_yaml()


def test_classes_select_the_hubs_namespaces_and_the_command_labels_them() -> None:
    many = united(physics=hub(), biology=hub())
    selector = {"matchLabels": {"hub.jupyter.org/users": "true"}}
    assert [
        many.values["podClasses"][name]["match"]["namespaceSelector"] for name in ("user", "build")
    ] == [selector] * 2
    assert "kubectl label namespace physics biology hub.jupyter.org/users=true" in many.to_yaml()
    assert many.values["replaceSchedulers"] == ["physics-user-scheduler", "biology-user-scheduler"]
    far = {"hub": {"config": {"KubeSpawner": {"namespace": "lab"}}}, **hub()}
    each = {"enable_user_namespaces": True, "user_namespace_labels": {"course": "x"}}
    many = united(a=far, b={"hub": {"config": {"KubeSpawner": each}}, **hub()})
    assert "kubectl label namespace lab a b hub.jupyter.org/users=true" in many.to_yaml()
    assert "kubectl label namespace -l course=x hub.jupyter.org/users=true" in many.to_yaml()


def test_what_can_not_be_united_is_what_most_hubs_have_and_told_by_hub() -> None:
    off = {**hub(), "scheduling": {"userScheduler": {"enabled": False}}}
    many = united(a=hub(), b=hub(), c=off)
    assert "scheduler" not in many.values
    assert "scheduler.target: none -> deploy" in many.differences["c"]
    assert set(many.differences) == {"c"}
    (row,) = [line for line in many.report().splitlines() if line.startswith("c ")]
    assert "scheduler.target: none -> deploy" in row


def test_a_hub_that_can_not_be_imported_is_left_out_and_the_others_count() -> None:
    many = import_many([of("ok", PLAIN), of("bad", "a: ["), of("Odd_Name", "")], try_import)
    assert [one.name for one in many.hubs] == ["ok"]
    assert many.left_out[0].startswith("bad: bad.yaml:")
    assert "Odd_Name: no namespace can be called so" in many.left_out[1]
    with pytest.raises(ValuesError, match=r"bad\.yaml"):
        import_many([of("bad", "a: [")], try_import)


def test_a_hub_among_others_is_judged_as_alone() -> None:
    for one in import_many(find_hubs_in(HUBS)[0], try_import).hubs:
        alone = import_layers(
            [(f"{one.name}.yaml", (HUBS / f"{one.name}.yaml").read_bytes())], usual_release=one.name
        )
        try_import(alone)
        for told in ("switch_off", "keep", "tried", "verdict"):
            assert getattr(one.result, told) == getattr(alone, told), (one.name, told)
    far = hub(profileList=[{"display_name": "A", "kubespawner_override": {"namespace": "far"}}])
    assert "keep on: scheduling.userScheduler.enabled" in united(a=far).report()


def test_what_the_release_does_not_do_stays_on_in_every_hub() -> None:
    off: Values = {**hub(), "scheduling": {"userScheduler": {"enabled": False}}}
    off["prePuller"] = {"hook": {"enabled": False}, "continuous": {"enabled": False}}
    report = united(a=hub(), b=off, c=off).report()
    assert "switch off" not in report
    assert "keep on: prePuller.continuous.enabled: most hubs have none" in report
    assert "in place of the hub's" not in report


# The command


def test_the_command_prints_values_and_a_table_with_a_row_for_each_hub(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path, physics=PLAIN, biology=PLAIN)
    assert main(["import", "--folder", str(folder)]) == 0
    printed = capsys.readouterr()
    assert load(printed.out.encode(), "out").values["singleuser"]["profileList"]  # type: ignore[index]
    assert [line.split()[0] for line in printed.err.splitlines()[-3:]] == [
        "hub",
        "biology",
        "physics",
    ]
    assert (
        main(["import", "--many", str(folder / "physics.yaml"), str(folder / "biology.yaml")]) == 0
    )
    assert capsys.readouterr().out.startswith("# Made by `roost import` from 2 hubs")


@pytest.mark.parametrize(("arguments", "said"), rows("generator/import-usage"))
def test_wrong_usage_is_told(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_may_hold_objects_of_argo_cd_with_hubs_values() -> None:
    hubs, passed = find_hubs_in(HUBS)
    assert "argo-application" in {hub.name for hub in hubs}
    assert passed == []
    # Its user scheduler is named after the release that the object names.
    many = import_many(
        [hub for hub in hubs if hub.name in ("argo-application", "one-odd-profile")], try_import
    )
    assert many.values["replaceSchedulers"] == [
        "jupyterhub-user-scheduler",
        "one-odd-profile-user-scheduler",
    ]
