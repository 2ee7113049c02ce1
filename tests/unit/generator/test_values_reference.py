"""The values file as an operator meets it: what comes first, how many keys, how wide."""

import yaml

from generator.locations import chart_folder


def count_leaves(value: object) -> int:
    """Keys that hold no map of keys; a list counts once."""
    return sum(map(count_leaves, value.values())) if isinstance(value, dict) and value else 1


def test_the_values_begin_with_what_an_operator_sets_and_stay_few_and_narrow() -> None:
    text = (chart_folder() / "values.yaml").read_text()
    values = yaml.safe_load(text)
    first = "image imageRegistry singleuser placeholders imageGate prePuller scheduler sharedPools recorder monitoring"
    assert list(values)[:11] == [*first.split(), "webhook"]
    chosen = {"imageGate": "mode", "prePuller": "enabled", "scheduler": "target", "webhook": "failurePolicy"}
    assert {group: next(iter(values[group])) for group in chosen} == chosen
    assert count_leaves(values) <= 190
    assert [line for line in text.splitlines() if len(line) > 100] == []
