"""Whatever a hub's values hold, what the importer prints is valid for Roost and reads back as it
was meant.
"""

import json
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.faults import ValuesError
from generator.importing.importer import import_layers
from generator.importing.quantities import cpu_quantity, memory_quantity, spawner_bytes
from generator.importing.yaml_printer import print_yaml
from generator.pipeline import find_faults
from generator.values.loader import load
from generator.values.merge import merge_values
from generator.values.release_name import Release
from generator.values.sources import CONTROL
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import requested
from tests.builders import CHART_VALUES
from tests.recorded_data import VALUES

# What an operator may write by mistake at any key, besides what belongs there.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(
    lambda text: not CONTROL.search(text)
)
WORDS = st.sampled_from(
    [
        "",
        "on",
        "1e3",
        "~",
        "null",
        "1Gi",
        "2G",
        "450M",
        "0.5",
        "quay.io/a/b",
        "v1",
        "hub",
        "a b",
        "ä",
        "x: y",
        "#",
    ]
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


def drawn(part: object) -> st.SearchStrategy[object]:
    """What belongs there, three times of four: as `hub-drawn.yaml` says."""
    match part:
        case {"any": alternatives}:
            right: st.SearchStrategy[object] = st.sampled_from(alternatives)
        case dict():
            right = st.fixed_dictionaries(
                {}, optional={key: drawn(one) for key, one in part.items()}
            )
        case list():
            right = st.lists(st.one_of(*map(drawn, part)), max_size=2)
        case _:
            right = st.just(part)
    return st.integers(0, 3).flatmap(lambda choice: right if choice else ODD)


PARTS = yaml.safe_load((VALUES / "hub-drawn.yaml").read_text())
HUB, BINDER, SERVICE, POOLS = (drawn(PARTS[name]) for name in ("hub", "binder", "service", "pools"))
FILES = st.one_of(
    HUB,
    BINDER,
    st.fixed_dictionaries(
        {"jupyterhub": HUB}, optional={"binderhub-service": SERVICE, "nodePlaceholder": POOLS}
    ),
    st.fixed_dictionaries({"binderhub": BINDER}),
    st.fixed_dictionaries(
        {"basehub": st.fixed_dictionaries({"jupyterhub": HUB, "binderhub-service": SERVICE})}
    ),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FILES)
def test_any_hubs_values_become_valid_values_or_a_fault(values: object) -> None:
    try:
        result = import_layers([("hub.yaml", json.dumps(values))])
    except ValuesError:
        return
    printed = load(result.to_yaml().encode(), "imported.yaml")
    assert printed.values == result.values
    merged = merge_values(CHART_VALUES, [printed])
    faults = find_faults(merged, Release())
    assert [str(fault) for fault in faults if fault.severity == "error"] == []
    assert all(note.reason for note in result.unmapped)
    assert "\n\n" not in result.report()


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), WORDS, TEXT)
TREES = st.recursive(
    LEAVES,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(TEXT, below, max_size=3)),
)


@given(st.dictionaries(TEXT, TREES, max_size=4), TEXT)
def test_printed_yaml_reads_back_as_it_was(values: dict[str, object], comment: str) -> None:
    comments: dict[tuple[str, ...], list[str]] = {(key,): [comment] for key in values}
    assert (
        load(print_yaml(values, comments).encode() if values else b"{}", "printed.yaml").values
        == values
    )


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


CPUS = st.sampled_from([None, 0.05, 1, 6.5, 32])
MEMORIES = st.sampled_from([None, "512M", "1G", "7.2G", "40G", "512G"])
PAIRS = st.fixed_dictionaries(
    {
        "cpu": st.fixed_dictionaries({"guarantee": CPUS, "limit": CPUS}),
        "memory": st.fixed_dictionaries({"guarantee": MEMORIES, "limit": MEMORIES}),
    }
)
QUANTITIES = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["50m", "3", "20"]),
        "memory": st.sampled_from(["256Mi", "6Gi", "80Gi"]),
    },
)
OWN_SIZES = st.fixed_dictionaries({}, optional={"requests": QUANTITIES, "limits": QUANTITIES})


@settings(max_examples=30, deadline=None)
@given(PAIRS, OWN_SIZES, st.integers(0, 4))
def test_where_few_fit_on_a_node_a_wrong_forecast_fills_three_usual_nodes_at_most(
    sizes: object, own: object, replicas: int
) -> None:
    # What only has a limit requests as much, as the API server stores it.
    placeholder = {"replicas": replicas, "resources": own}
    values = {"singleuser": sizes, "scheduling": {"userPlaceholder": placeholder}}
    result = import_layers([("hub.yaml", json.dumps(values))])
    placeholders: Any = result.values["placeholders"]
    (entry,) = placeholders
    seat = requested(entry.get("resources", {}))
    most = entry["learn"]["max"]
    if most <= max(3, entry["replicas"]):
        return
    memory = parse_quantity(seat.get("memory", 0))
    cpus = parse_quantity(seat.get("cpu", 0))
    if 8 * memory <= 64 * 2**30 and 8 * cpus <= 16:
        assert most == 1000
    else:
        assert most * memory <= 3 * 64 * 2**30
        assert most * cpus <= 3 * 16
