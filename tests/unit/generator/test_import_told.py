"""What `roost import` tells is so: images as their hub means them, profile by profile, who is
within reach, what may be switched off. The files are small ones of the kinds that operators
reported.
"""

import json
from typing import Any

import pytest

from generator.importing.importer import import_layers
from generator.importing.profile_pools import LEARN
from generator.importing.proposals import propose
from generator.importing.result import ImportNote, ImportResult
from generator.importing.trial_pods import user_pods
from generator.render.managed_images import managed_images, profile_seats
from generator.values.lookups import child, listing
from roost.commands.hub_trial import try_import
from roost_core.objects.image_references import normalise_reference
from tests.recorded_data import HUBS, rows
from tests.unit.generator.imported_hubs import hub, imported, merged, value

PULLER = "prePuller.continuous.enabled"
SCHEDULER = "scheduling.userScheduler.enabled"
PYTHON = "that hub.extraConfig.a sets in Python (line 1)"


def imported_file(name: str) -> ImportResult:
    path = HUBS / f"{name}.yaml"
    result = import_layers([(path.name, path.read_bytes())])
    merged(result)
    return result


def imported_text(text: str) -> ImportResult:
    return import_layers([("hub.yaml", text)])


def images(result: ImportResult) -> set[str]:
    """What pullers bring, and the gate and the warm set go by."""
    return set(managed_images(value(result, "singleuser"), value(result, "prePuller")))


def only_set(result: ImportResult) -> Any:
    sets = result.values["placeholders"]
    assert isinstance(sets, list)
    (entry,) = sets
    return entry


def named(result: ImportResult) -> list[tuple[int, str]]:
    """Line and key of what wasn't mapped."""
    return [(note.line, note.key) for note in result.unmapped]


@pytest.mark.parametrize(("image", "reference"), rows("generator/hubs-images"))
def test_an_image_is_what_the_hub_means_by_it(image: str, reference: str) -> None:
    assert images(imported(f"singleuser: {{image: {image}}}")) == {reference}
    if "null" not in image and "2024" not in image and "''" not in image:
        extra = imported(f"prePuller: {{extraImages: {{a: {image}}}}}")
        assert images(extra) == {reference}


@pytest.mark.parametrize(
    "image", ["r.example.org/Lab:1", "r.example.org/lab@sha256:v1", "a:-1", "http://a/b:1", "a//b"]
)
def test_what_no_node_can_pull_is_refused_with_its_line_and_nothing_is_promised(image: str) -> None:
    odd = f'{{kubespawner_override: {{image: "{image}"}}}}'
    option = f"{{o: {{choices: {{b: {odd}, c: {{kubespawner_override: {{image: 'c:1'}}}}}}}}}}"
    result = imported(f"singleuser:\n  profileList:\n  - {odd}\n  - profile_options: {option}")
    assert images(result) == {"docker.io/library/c:1"}
    assert [line for line, key in named(result) if key.endswith("image")] == [3, 4]
    name, _, tag = image.rpartition(":")
    result = imported(f'singleuser:\n  image: {{name: "{name or image}", tag: "{name and tag}"}}')
    assert [line for line, _ in named(result)] == [2]
    assert "bring" not in "".join(result.summary.will)
    assert [line.partition(":")[0] for line in result.keep] == [PULLER]


@pytest.mark.parametrize("tag", ["[1]", "'no tag!'", "{a: b}"])
def test_half_a_reference_is_none(tag: str) -> None:
    result = imported(f"singleuser: {{image: {{name: r.example.org/lab, tag: {tag}}}}}")
    assert images(result) == set()
    assert any(note.key.startswith("singleuser.image") for note in result.unmapped)
    assert [line.partition(":")[0] for line in result.keep] == [PULLER]


def test_one_odd_profile_costs_itself_alone() -> None:
    result = imported_file("one-odd-profile")
    assert images(result) == {f"registry.example.org/{name}:1" for name in ("lab", "cpu", "gpu")}
    assert named(result) == [(6, "singleuser.profileList[2].kubespawner_override.image")]


def test_profiles_by_name_are_read_as_those_of_a_list() -> None:
    named_ = ", ".join(
        f"{name}: {{kubespawner_override: {{image: '{name}:1'}}}}" for name in ("b", "a")
    )
    in_python = (
        "{'b': {'kubespawner_override': {'image': 'b:1'}}, 'a': {'kubespawner_override': {'image':"
        " 'a:1'}}}"
    )
    for text in (
        f"singleuser: {{profileList: {{{named_}}}}}",
        _extra(f"c.KubeSpawner.profile_list = {in_python}"),
    ):
        result = imported(text)
        carried = listing(value(result, "singleuser.profileList"))
        assert [child(one, "kubespawner_override", "image") for one in carried] == ["a:1", "b:1"]
        assert len(user_pods(result)) == 2
        assert named(result) == []


def test_each_override_that_is_not_carried_is_named_with_its_line() -> None:
    override = "singleuser.profileList[{}].kubespawner_override.{}"
    keys = ("image", "node_affinity_required", "tolerations[0]", "nodeSelector")
    assert named(imported_file("dropped-without-a-word")) == [
        (at + 4, override.format(at, key)) for at, key in enumerate(keys)
    ]
    choice = (
        "{choices: {a: {kubespawner_override: {node_selector: {gpu: 1}, tolerations: {a: 1}, image:"
        " null}}}}"
    )
    result = imported(f"singleuser: {{profileList: [7, {{profile_options: {{o: {choice}}}}}]}}")
    below = "singleuser.profileList[1].profile_options.o.choices.a.kubespawner_override"
    expected = ["singleuser.profileList[0]", f"{below}.node_selector.gpu", f"{below}.tolerations"]
    assert [key for _, key in named(result)] == expected
    for override in (
        *(
            "namespace: far",
            "priority_class_name: high",
            "scheduler_name: mine",
            "component_label: x",
        ),
        *("mem_limit: much", "cpu_guarantee: -1", "extra_resource_limits: {a/gpu: one}"),
        *("extra_pod_config: {nodeName: a}", "pod_affinity_required: [{}]"),
    ):
        result = imported(
            f"singleuser:\n  profileList:\n  - kubespawner_override:\n      {override}"
        )
        ((line, key),) = named(result)
        assert (line, key.rpartition("override.")[2].partition(".")[0]) == (
            4,
            override.partition(":")[0],
        )
    for carried in (
        "scheduler_name: hub-user-scheduler",
        "mem_limit: '{value}G'",
        "extra_pod_config: {dnsPolicy: x}",
    ):
        assert not named(
            imported(f"singleuser: {{profileList: [{{kubespawner_override: {{{carried}}}}}]}}")
        )


def test_the_hubs_puller_stays_on_while_roosts_has_no_image() -> None:
    result = imported_file("no-image-named")
    assert result.switch_off == [f"jupyterhub.{SCHEDULER}: false"]
    (kept,) = result.keep
    assert kept.startswith(f"jupyterhub.{PULLER}: no image of users is named here")
    assert kept in result.report(details=False)


@pytest.mark.parametrize(("hub", "image"), rows("generator/hubs-spawner-images"))
def test_an_image_of_the_spawners_settings_comes_before_the_charts(hub: str, image: str) -> None:
    result = imported(hub)
    assert images(result) == {normalise_reference(image)}
    assert (user_pods(result)[0].pod["spec"]["containers"][0]["image"] == image) == (
        "read" not in hub
    )
    assert [key for _, key in named(result)] == (["hub.extraConfig.a"] if "read" in hub else [])
    assert any(line.startswith(PULLER) for line in result.switch_off)


def _extra(code: str) -> str:
    return f'hub: {{extraConfig: {{a: "{code}"}}}}'


def test_python_that_cant_be_read_makes_no_promise_and_is_named() -> None:
    for code, statement in rows("generator/python-sets-any"):
        result = imported(f"singleuser: {{image: {{name: lab, tag: '1'}}}}\n{_extra(code)}")
        for _ in range(2):
            first = result.report().splitlines()[0]
            assert first.startswith(
                "Roost places no users until podClasses.user.match and replaceSchedulers fit"
            )
            assert "hub.extraConfig.a does in Python (line 2: " in first
            assert statement in first
            assert not any(SCHEDULER in line for line in result.switch_off)
            try_import(result)
    for code in rows("generator/python-sets-nothing"):
        result = imported(_extra(code))
        try_import(result)
        assert (result.places_users_once, "podClasses" in result.values) == ([], False), code
        assert "are set in Python" not in str(result.tried), code


@pytest.mark.parametrize("expression", [f"f{'.a' * 500}", f"f{'()' * 500}", f"{'not ' * 500}f"])
def test_python_that_nests_too_deep_to_be_read_makes_no_promise(expression: str) -> None:
    hook = imported(_extra(f"c.KubeSpawner.pre_spawn_hook = {expression}"))
    assert "podClasses.user.match" in hook.places_users_once[0]
    profiles = imported(_extra(f"c.KubeSpawner.profile_list = {expression}"))
    assert named(profiles) == [(1, "hub.extraConfig.a")]
    builds = {
        "config": {"BinderHub": {"use_registry": True}},
        "extraConfig": {"b": f"x = c.BinderHub, {expression}"},
        "jupyterhub": {"singleuser": {}},
    }
    assert named(imported_text(json.dumps(builds))) == [(1, "extraConfig.b")]


@pytest.mark.parametrize(("hub", "match"), rows("generator/hubs-namespaces"))
def test_the_class_follows_users_to_their_namespace(hub: str, match: dict[str, str]) -> None:
    result = imported(f"{hub}\nsingleuser: {{image: {{name: a/b, tag: '1'}}}}")
    assert value(result, "podClasses.user.match.namespaceSelector") == {"matchLabels": match}
    assert f"{SCHEDULER}: false" in result.switch_off
    assert "places no users" not in result.report()


@pytest.mark.parametrize(("hub", "component"), rows("generator/hubs-labels"))
def test_the_class_follows_users_labels(hub: str, component: str) -> None:
    assert value(imported(hub), "podClasses.user.match.labels") == {"component": component}


@pytest.mark.parametrize(("hub", "until"), rows("generator/hubs-out-of-reach"))
def test_who_is_out_of_reach_is_said_first_and_the_hubs_scheduler_stays_on(
    hub: str, until: str
) -> None:
    result = imported(hub)
    assert result.report().startswith("Roost places no users until ")
    assert until in result.report().splitlines()[0]
    assert not any(SCHEDULER in line for line in result.switch_off)
    assert any(line.startswith(f"{SCHEDULER}: ") for line in result.keep)
    try_import(result)
    assert PYTHON not in until or (
        until in result.report().splitlines()[0] and "podClasses" not in result.values
    )
    code = (
        "def hook(spawner):\\n  namespace = scheduler_name = f()\\n "
        " spawner.extra_pod_config['dnsPolicy'] = f()"
    )
    assert not imported(_extra(f"{code}\\nc.Other.namespace = f()")).places_users_once


@pytest.mark.parametrize(("code", "told"), rows("generator/hubs-python-images"))
def test_an_image_that_python_chooses_is_not_promised(code: str, told: str) -> None:
    gpu = (
        "{slug: gpu, kubespawner_override: {image: 'g:1', node_selector: {pool: gpu},"
        " cpu_guarantee: 9}}"
    )
    room = "scheduling: {userPlaceholder: {enabled: true, replicas: 3}}"
    hub = (
        f"{_extra(code)}\nsingleuser: {{image: {{name: a/b, tag: '1'}}, profileList:"
        f" [{gpu}]}}\n{room}"
    )
    result = imported(hub.replace(f"[{gpu}]", "[{slug: a}]") if "image" in code else hub)
    try_import(result)
    assert result.tried == [f"users: Roost's scheduler, {told}"]
    # Nor what was seen of profiles that a function replaces.
    assert ("keep 3 placeholders" in "".join(result.summary.will)) == ("placeholders" in told)
    assert [child(one, "nodeSelector") for one in listing(result.values["placeholders"])] == [None]
    assert ("write the size that your profiles give" in result.to_yaml()) == ("profiles" in told)
    assert not any(
        "profiles choose" in proposal.reason
        for proposal in propose(result, [("hub.yaml", hub)], "hub")
    )
    assert (named(result), "bring" in "".join(result.summary.will)) == (
        [(1, "hub.extraConfig.a")],
        False,
    )


def test_profiles_that_python_writes_out_are_carried_and_the_first_stays_the_default_one() -> None:
    gpu = (
        "{'display_name': 'GPU', 'kubespawner_override': {'image': 'g:1', 'extra_resource_limits':"
        " {'a.b/gpu': '1'}}}"
    )
    profiles = (
        f"[{{'display_name': 'Usual'}}, {gpu}, {{'display_name': 'Odd', 'kubespawner_override':"
        " {'image': 7}}]"
    )
    result = imported(
        f"{_extra(f'c.KubeSpawner.profile_list = {profiles}')}\nsingleuser: {{image: {{name: a,"
        " tag: '1'}}"
    )
    carried = listing(value(result, "singleuser.profileList"))
    assert [child(one, "display_name") for one in carried] == ["Usual", "GPU"]
    assert images(result) == {normalise_reference("a:1"), normalise_reference("g:1")}
    try_import(result)
    assert [line.partition(":")[0] for line in result.tried] == [
        "users of Usual, GPU",
        "users of Odd",
    ]
    assert (1, "hub.extraConfig.a[2].kubespawner_override.image") in named(result)


def test_a_filter_of_profiles_runs_however_they_were_set_before() -> None:
    for profiles in ("c.KubeSpawner.profile_list", "c.KubeSpawner['profile_list']"):
        written = (
            "setattr(c.KubeSpawner, 'profile_list', [{'kubespawner_override': {'image': 'a:1'}}])"
        )
        result = imported(_extra(f"{written}\\nif {profiles}:\\n  {profiles} = f"))
        assert (value(result, "singleuser.profileList"), images(result)) == ([], set())


def test_the_first_choice_that_python_writes_out_stays_the_default_one() -> None:
    choices = (
        "{'z': {'kubespawner_override': {'image': 'z:1'}}, 'a': {'kubespawner_override': {'image':"
        " 'a:1'}}}"
    )
    result = imported(
        _extra(
            "c.KubeSpawner.profile_list = [{'profile_options': {'o': {'choices':"
            f" {choices}}}}}}}]"
        )
    )
    (seat,) = profile_seats(value(result, "singleuser"), {}, [])
    assert seat["image"] == "z:1"


def test_what_is_refused_is_not_carried_promised_or_spoken_of() -> None:
    # A number is no label's value; a template is no tag; of extraPodConfig only what is about
    # placement is named.
    profile = "{kubespawner_override: {image: 'a:1', node_selector: {pool: 7, zone: a}}}"
    pod = "extraPodConfig: {schedulerName: mine, dnsPolicy: Default, nodeSelector: {pool: users}}"
    result = imported(
        f"singleuser: {{image: {{name: b, tag: '{{{{tag}}}}'}}, profileList: [{profile}], {pod}}}"
    )
    (carried,) = listing(value(result, "singleuser.profileList"))
    assert child(carried, "kubespawner_override", "node_selector") == {"zone": "a"}
    assert {key for _, key in named(result)} == {
        "singleuser.extraPodConfig.schedulerName",
        "singleuser.image",
        "singleuser.profileList[0].kubespawner_override.node_selector.pool",
    }
    assert not [note for note in result.notes if "a tag that moves" in note]


def test_the_gate_is_not_promised_to_users_whose_image_no_puller_brings() -> None:
    gpu = "{slug: a, kubespawner_override: {image: 'g:1'}}"
    users = f"singleuser: {{image: {{name: a, tag: '1'}}, profileList: [{gpu}]}}"
    hub = f"{users}\nprePuller: {{pullProfileListImages: false}}"
    result = import_layers([("hub.yaml", hub)])
    try_import(result)
    assert result.tried == ["users: Roost's scheduler, image not brought"]
    assert not any(line.startswith(PULLER) for line in result.switch_off)
    assert "keep users off" not in "".join(result.summary.will)


def test_a_tag_that_is_the_charts_own_is_not_guessed() -> None:
    result = imported("singleuser: {image: {name: r.example.org/lab}}")
    assert (images(result), [line.partition(":")[0] for line in result.keep]) == (set(), [PULLER])
    assert any(note.startswith("singleuser.image.tag is not in this file") for note in result.notes)


def test_a_spawner_of_its_own_is_named() -> None:
    result = imported("hub: {config: {JupyterHub: {spawner_class: mine.Spawner}}}")
    assert (1, "hub.config.JupyterHub.spawner_class") in named(result)
    for code in ("Custom", "'dockerspawner.DockerSpawner'", "'kubespawner.KubeSpawner'"):
        is_named = bool(named(imported(_extra(f"c.JupyterHub.spawner_class = {code}"))))
        assert is_named == ("kubespawner" not in code)


def test_values_inside_objects_of_argo_cd_and_flux_are_read_with_their_lines() -> None:
    result = imported_file("argo-application")
    assert images(result) == {"registry.example.org/lab:1"}
    assert result.values["replaceSchedulers"] == ["jupyterhub-user-scheduler"]
    flux = (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec:\n  releaseName: lab\n "
        " values:\n"
    )
    odd = imported_text(f"{flux}    singleuser:\n      image: {{name: a/b, tag: [1]}}\n")
    assert (named(odd), odd.values["replaceSchedulers"]) == (
        [(7, "singleuser.image.tag")],
        ["lab-user-scheduler"],
    )
    sources = hub("argo-sources")
    written = imported(sources)
    assert (images(written), named(written)) == (
        {"docker.io/a/b:1"},
        [(12, "singleuser.nodeSelector")],
    )
    # Argo CD reads one of the two.
    both = imported(
        f"{sources.rstrip()}\n        valuesObject: {{singleuser: {{image: {{name: a/b, tag:"
        " '2'}}}"
    )
    assert (images(both), named(both)) == ({"docker.io/a/b:2"}, [])


@pytest.mark.parametrize(
    ("kind", "name", "template", "scheduler"),
    [
        ("Application", "lab", "", "lab-user-scheduler"),
        ("ApplicationSet", "'{{n}}'", "template", "hub-user-scheduler"),
    ],
)
def test_what_an_object_takes_from_elsewhere_is_named(
    kind: str, name: str, template: str, scheduler: str
) -> None:
    helm = (
        "{valueFiles: [x.yaml], parameters: [{name: a, value: b}], valuesObject: {singleuser:"
        " {image: {name: a/b}}}}"
    )
    body = f"metadata: {{name: {name}}}, spec: {{source: {{helm: {helm}}}}}"
    body = f"spec: {{{template}: {{{body}}}}}" if template else body
    result = imported_text(f"{{apiVersion: argoproj.io/v1alpha1, kind: {kind}, {body}}}")
    assert result.values["replaceSchedulers"] == [scheduler]
    told = [note for note in result.notes if "isn't read here" in note]
    assert [note.split()[1].rpartition(".")[2] for note in told] == ["valueFiles", "parameters"]
    spec = "{valuesFrom: [{name: a}], values: {singleuser: {}}}"
    flux = f"{{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, spec: {spec}}}"
    assert any("spec.valuesFrom isn't read here" in note for note in imported_text(flux).notes)


def test_placeholders_are_as_large_as_the_default_profiles_users_and_gpus_are_learned() -> None:
    result = imported_file("default-profile-with-gpu")
    entry = only_set(result)
    assert entry["resources"]["requests"] == {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1"}
    path = HUBS / "default-profile-with-gpu.yaml"
    assert propose(result, [(path.name, path.read_bytes())], "hub") == []
    # KubeSpawner takes any text for yes.
    second = (
        "{display_name: B, default: 'yes', kubespawner_override: {mem_guarantee: 3G, node_selector:"
        " {pool: b}}}"
    )
    chosen = imported(f"singleuser: {{profileList: [{{display_name: A}}, {second}]}}")
    entry = only_set(chosen)
    assert (entry["resources"]["requests"], entry["nodeSelector"]) == (
        {"memory": "3Gi"},
        {"pool": "b"},
    )
    # `validate --strict` says nothing of a default profile that is smaller.
    second = second.replace("mem_guarantee: 3G", "mem_guarantee: 0.5Gi, cpu_guarantee: 0")
    small = imported(
        f"singleuser: {{cpu: {{guarantee: 2}}, profileList: [{{display_name: A}}, {second}]}}"
    )
    assert only_set(small)["resources"] == {"requests": {"memory": "512Mi"}}
    # Where a seat is a node of its own, the hub's number stood for smaller ones: none stands, but
    # the set learns.
    hub = "scheduling: {userPlaceholder: {replicas: 2}}\nsingleuser: {%s}"
    machine = only_set(
        imported(
            hub % "profileList: [{display_name: A, kubespawner_override: {mem_guarantee: 65G}}]"
        )
    )
    # Three nodes' worth: one seat is a node.
    three = {**LEARN, "max": 3}
    assert (machine["replicas"], machine["learn"]) == (0, three)
    kept = only_set(imported(hub % "memory: {guarantee: 65G}"))
    assert (kept["replicas"], kept["learn"]) == (2, three)
    gpu = "extraResource: {guarantees: {nvidia.com/gpu: 1}}"
    alone, kept = only_set(imported(f"singleuser: {{{gpu}}}")), only_set(imported(hub % gpu))
    assert [(one["replicas"], one["learn"]) for one in (alone, kept)] == [(0, three), (2, three)]
    # What a node costs is the same, whether the hub kept seats there or not.
    assert [one["prices"]["nodeHour"] for one in (alone, kept)] == [3, 3]
    # A seat of that size is most of a node.
    for size, are_proposed in (("64G", True), ("65G", False)):
        text = f"singleuser: {{memory: {{guarantee: {size}}}}}"
        proposals = propose(imported_text(text), [("hub.yaml", text)], "hub")
        assert any("placeholders" in proposal.values for proposal in proposals) == are_proposed


def test_a_default_profile_that_roost_rejects_leaves_the_usual_users_size() -> None:
    odd = (
        "{display_name: A, kubespawner_override: {mem_guarantee: 3G, node_selector: {'no label!':"
        " b}}}"
    )
    entry = only_set(imported_text(f"singleuser: {{profileList: [{odd}]}}"))
    assert entry == {
        "name": "default",
        "replicas": 0,
        "learn": {**LEARN, "max": 1000},
        "resources": {"requests": {"memory": "1Gi"}},
    }


def test_extra_pod_config_says_where_placeholders_and_pullers_go() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
    required = f"{{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}}}"
    result = imported(f"""
        singleuser:
          nodeSelector: {{pool: a}}
          extraPodConfig:
            nodeSelector: {{pool: b}}
            tolerations: [{{key: b, operator: Exists}}]
            affinity: {{nodeAffinity: {required}}}
        """)
    defaults = value(result, "placeholder.defaults")
    assert isinstance(defaults, dict)
    assert defaults["nodeSelector"] == value(result, "singleuser.nodeSelector") == {"pool": "b"}
    assert defaults["tolerations"] == [{"key": "b", "operator": "Exists"}]
    assert (
        defaults["requiredNodeTerms"]
        == value(result, "singleuser.extraNodeAffinity.required")
        == terms
    )


def test_a_short_report_says_how_much_more_there_is() -> None:
    result = imported_file("dropped-without-a-word")
    short = result.report(details=False).splitlines()
    *whole, book, zone, known = result.report().splitlines()
    # How the first week's classes find room is said last, however much else there is.
    assert short[12:] == [book, zone, known]
    assert "Set timeZone in placeholders" in zone
    assert "roost book --timetable" in book
    assert short[11].startswith(f"{len(whole) - 11} more lines")
    assert short[:11] == whole[:11]


@pytest.mark.parametrize("files", [1, 2])
def test_a_short_report_counts_the_faults_that_it_leaves_out_of_one_file_or_several(
    files: int,
) -> None:
    result = import_layers(
        [("hub.yaml", "singleuser: {}"), ("more.yaml", "singleuser: {}\n")][:files]
    )
    result.unmapped = [
        ImportNote("hub.yaml", f"hub.key{line}", line, "text", "it has no place")
        for line in range(1, 21)
    ]
    whole = result.report().splitlines()
    (cut,) = [line for line in result.report(details=False).splitlines() if "more lines" in line]
    left_out = [line for line in whole[11:] if line.startswith("hub.yaml:")]
    assert left_out
    assert f", {len(left_out)} of them keys" in cut
