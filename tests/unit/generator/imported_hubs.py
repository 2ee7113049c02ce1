"""Import values of hubs, check that the result is valid, and read it as Roost would."""

from textwrap import dedent

import pytest

from generator.faults import ValuesError
from generator.importing.importer import import_layers
from generator.importing.result import ImportResult
from generator.pipeline import find_faults
from generator.render.functions import complete_placeholder_set, core_pod, items
from generator.values.loader import load
from generator.values.lookups import child
from generator.values.merge import Merged, merge_values
from generator.values.release_name import Release
from tests.builders import CHART_VALUES
from tests.recorded_data import VALUES

PURPOSE_USER = {
    "matchExpressions": [
        {"key": "hub.jupyter.org/node-purpose", "operator": "In", "values": ["user"]}
    ]
}


def hub(name: str) -> str:
    """Values of a made-up hub."""
    return (VALUES / f"hub-{name}.yaml").read_text()


def merged(result: ImportResult) -> Merged:
    """What Roost makes of the printed document; it must be valid and say what the result says."""
    printed = load(result.to_yaml().encode(), "imported.yaml")
    assert printed.values == result.values
    whole = merge_values(CHART_VALUES, [printed])
    faults = find_faults(whole, Release())
    # `validate --strict` passes, but where the hub itself has its profiles' images not pulled.
    assert [
        str(fault)
        for fault in faults
        if fault.severity != "hint" and "not pulled to any node" not in fault.found
    ] == []
    return whole


def imported(text: str, release: str = "hub") -> ImportResult:
    result = import_layers([("hub.yaml", dedent(text))], release)
    merged(result)
    return result


def value(result: ImportResult, dotted: str) -> object:
    """A value of the document that was printed, merged into Roost's defaults and, for a program,
    into `corePods`.
    """
    values = dict(merged(result).values)
    for program in ("scheduler", "webhook", "controllers", "recorder", "seating"):
        values[program] = {
            **dict(items(values[program])),
            **core_pod(values["corePods"], values[program]),
        }
    return child(values, *dotted.split("."))


def placeholder(result: ImportResult) -> dict[str, object]:
    sets = result.values["placeholders"]
    assert isinstance(sets, list)
    (only,) = sets
    assert isinstance(only, dict)
    return complete_placeholder_set(only, value(result, "placeholder.defaults"))


def unmapped(result: ImportResult) -> dict[str, int]:
    return {note.key: note.line for note in result.unmapped}


def fault_of(text: str | bytes) -> str:
    with pytest.raises(ValuesError) as caught:
        import_layers([("hub.yaml", text)])
    return str(caught.value)
