"""Whatever a hub's values hold, what the importer prints is valid for Roost and reads back as it was meant."""

import json
from functools import cache

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.checks import lint
from generator.faults import ValuesError
from generator.importing.importer import import_layers
from generator.importing.printing import print_yaml
from generator.importing.quantities import cpu_quantity, memory_quantity, spawner_bytes
from generator.locations import chart_folder
from generator.schema.check import find_faults
from generator.values.loader import load
from generator.values.merge import merge_values
from generator.values.release import Release
from generator.values.sources import CONTROL, LoadedFile
from roost_core.objects.quantities import parse_quantity

# What an operator may write by mistake at any key, besides what belongs there.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(lambda text: not CONTROL.search(text))
WORDS = st.sampled_from(
    ["", "on", "1e3", "~", "null", "1Gi", "2G", "450M", "0.5", "quay.io/a/b", "v1", "hub", "a b", "ä", "x: y", "#"]
)
ODD: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**12),
    st.floats(-10, 1e9, allow_nan=False),
    WORDS,
    TEXT,
    st.lists(WORDS, max_size=2),
    st.dictionaries(WORDS, WORDS, max_size=2),
)


def often(right: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """What belongs there, three times of four."""
    return st.integers(0, 3).flatmap(lambda choice: right if choice else ODD)


def some(**keys: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return often(st.fixed_dictionaries({}, optional=keys))


SWITCH = often(st.booleans())
COUNT = often(st.integers(0, 200))
SIZE = often(st.sampled_from(["1G", "450M", "1.5G", 1073741824, "256M", "2T", "512Mi"]))
QUANTITY = often(st.sampled_from(["1Gi", "450M", "100m", "2", 0.5, 1, "57350076Ki", "1e3"]))
LABELS = often(st.dictionaries(st.sampled_from(["pool", "hub.jupyter.org/node-purpose", "a b"]), WORDS, max_size=2))
TOLERATION = some(
    key=WORDS, operator=st.sampled_from(["Exists", "Equal"]), value=WORDS, effect=st.sampled_from(["NoSchedule", "x"])
)
EXPRESSION = some(key=WORDS, operator=st.sampled_from(["In", "Exists"]), values=st.lists(WORDS, max_size=2))
TERM = some(matchExpressions=st.lists(EXPRESSION, max_size=2))
RESOURCES = some(requests=some(cpu=QUANTITY, memory=QUANTITY), limits=some(cpu=QUANTITY, memory=QUANTITY))
IMAGE = some(
    name=often(st.sampled_from(["quay.io/a/b", "a/b@sha256:0", "x"])),
    tag=WORDS,
    pullPolicy=WORDS,
    pullSecrets=st.lists(WORDS),
)
PURPOSE = some(matchNodePurpose=often(st.sampled_from(["ignore", "prefer", "require"])))
PODS = some(tolerations=often(st.lists(TOLERATION, max_size=2)), nodeAffinity=PURPOSE)
CONTAINERS = often(st.lists(some(name=WORDS, image=WORDS), max_size=2))
SECRETS = often(st.lists(st.one_of(WORDS, some(name=WORDS)), max_size=2))
EXTENDED = often(st.dictionaries(st.sampled_from(["nvidia.com/gpu", "cpu"]), QUANTITY, max_size=2))
OVERRIDE = some(
    image=often(st.sampled_from(["quay.io/a/b:1", "x"])),
    mem_guarantee=SIZE,
    node_selector=LABELS,
    tolerations=often(st.lists(TOLERATION, max_size=2)),
    node_affinity_required=often(st.lists(TERM, max_size=2)),
    extra_resource_limits=EXTENDED,
    init_containers=CONTAINERS,
    image_pull_secrets=SECRETS,
)
CHOICES = often(st.dictionaries(WORDS, some(kubespawner_override=OVERRIDE), max_size=2))
PROFILE = some(display_name=WORDS, kubespawner_override=OVERRIDE, profile_options=some(image=some(choices=CHOICES)))
PLUGINS = some(
    score=some(
        enabled=st.lists(some(name=WORDS, weight=COUNT), max_size=2), disabled=st.lists(some(name=WORDS), max_size=1)
    )
)
HUB = some(
    fullnameOverride=WORDS,
    imagePullSecret=some(create=SWITCH),
    imagePullSecrets=SECRETS,
    hub=some(config=some(KubeSpawner=some(image=WORDS)), extraConfig=some(a=WORDS), nodeSelector=LABELS),
    scheduling=some(
        userScheduler=some(
            enabled=SWITCH,
            replicas=COUNT,
            logLevel=COUNT,
            plugins=PLUGINS,
            pluginConfig=often(st.lists(some(name=WORDS, args=LABELS), max_size=1)),
            image=IMAGE,
            nodeSelector=LABELS,
            tolerations=often(st.lists(TOLERATION, max_size=1)),
            labels=LABELS,
            pdb=some(enabled=SWITCH, maxUnavailable=COUNT, minAvailable=COUNT),
            resources=RESOURCES,
        ),
        podPriority=some(
            enabled=SWITCH,
            globalDefault=SWITCH,
            defaultPriority=often(st.integers(-20, 20)),
            userPlaceholderPriority=often(st.integers(-20, 20)),
        ),
        userPlaceholder=some(
            enabled=SWITCH, replicas=COUNT, image=IMAGE, labels=LABELS, annotations=LABELS, resources=RESOURCES
        ),
        corePods=PODS,
        userPods=PODS,
        unknown=ODD,
    ),
    prePuller=some(
        hook=some(enabled=SWITCH),
        continuous=some(enabled=SWITCH),
        pullProfileListImages=SWITCH,
        extraImages=often(st.dictionaries(WORDS, IMAGE, max_size=2)),
    ),
    singleuser=some(
        image=IMAGE,
        cpu=some(guarantee=often(st.sampled_from([0.05, 1, "0.5", "500m"])), limit=COUNT),
        memory=some(guarantee=SIZE, limit=SIZE),
        nodeSelector=LABELS,
        extraTolerations=often(st.lists(TOLERATION, max_size=2)),
        extraNodeAffinity=some(
            required=often(st.lists(TERM, max_size=2)),
            preferred=often(st.lists(some(weight=often(st.integers(1, 100)), preference=TERM), max_size=2)),
        ),
        extraResource=some(limits=EXTENDED, guarantees=LABELS),
        initContainers=CONTAINERS,
        extraContainers=CONTAINERS,
        networkTools=some(image=IMAGE),
        cloudMetadata=some(blockWithIptables=SWITCH),
        profileList=often(st.lists(PROFILE, max_size=2)),
    ),
)
EXECUTOR = some(sticky_builds=SWITCH, namespace=WORDS, resources=RESOURCES, docker_host=WORDS, node_selector=LABELS)
OLD = some(sticky_builds=SWITCH, build_namespace=WORDS, build_memory_request=SIZE, build_node_selector=LABELS)
CONFIG = some(KubernetesBuildExecutor=EXECUTOR, BinderHub=OLD)
BINDER = some(imageBuilderType=often(st.sampled_from(["host", "dind", "pink"])), config=CONFIG, jupyterhub=HUB)
SERVICE = some(enabled=SWITCH, config=CONFIG, dockerApi=some(nodeSelector=LABELS))
FILES = st.one_of(
    HUB,
    BINDER,
    st.fixed_dictionaries({"jupyterhub": HUB}, optional={"binderhub-service": SERVICE, "nodePlaceholder": LABELS}),
    st.fixed_dictionaries({"binderhub": BINDER}),
    st.fixed_dictionaries({"basehub": st.fixed_dictionaries({"jupyterhub": HUB, "binderhub-service": SERVICE})}),
)


@cache
def defaults() -> LoadedFile:
    return load((chart_folder() / "values.yaml").read_bytes(), "chart/values.yaml")


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FILES)
def test_any_hubs_values_become_valid_values_or_a_fault(values: object) -> None:
    try:
        result = import_layers([("hub.yaml", json.dumps(values))])
    except ValuesError:
        return
    printed = load(result.to_yaml().encode(), "imported.yaml")
    assert printed.values == result.values
    merged = merge_values(defaults(), [printed])
    faults = find_faults(merged) or lint(merged, Release())
    assert [str(fault) for fault in faults if fault.severity == "error"] == []
    assert all(note.reason for note in result.unmapped)
    assert "\n\n" not in result.report()


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), WORDS, TEXT)
TREES = st.recursive(
    LEAVES, lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(TEXT, below, max_size=3))
)


@given(st.dictionaries(TEXT, TREES, max_size=4), TEXT)
def test_printed_yaml_reads_back_as_it_was(values: dict[str, object], comment: str) -> None:
    comments: dict[tuple[str, ...], list[str]] = {(key,): [comment] for key in values}
    assert load(print_yaml(values, comments).encode() if values else b"{}", "printed.yaml").values == values


@given(st.integers(1, 2**60))
def test_a_memory_quantity_is_exactly_the_bytes(size_bytes: int) -> None:
    assert parse_quantity(memory_quantity(size_bytes)) == size_bytes


@given(st.integers(1, 10**5), st.sampled_from("KMGT"))
def test_the_spawners_units_are_powers_of_1024(count: int, unit: str) -> None:
    size_bytes = spawner_bytes(f"{count}{unit}")
    assert size_bytes is not None
    assert size_bytes == count * 1024 ** ("KMGT".index(unit) + 1)
    assert parse_quantity(memory_quantity(size_bytes)) == parse_quantity(f"{count}{unit}i")


@given(st.floats(0.001, 10_000))
def test_a_cpu_quantity_is_at_least_what_was_asked_for(cpus: float) -> None:
    amount = float(parse_quantity(cpu_quantity(cpus)))
    assert cpus <= amount <= cpus + 0.0011
