"""Whatever values the schema accepts, up to its greatest numbers, is rendered with bounded work, or
refused.
"""

import json
from collections.abc import Callable

import pytest

from generator.faults import ValuesError
from generator.pipeline import render
from generator.schema.check import find_faults
from generator.values.files import parse_values
from generator.values.release_name import Release
from roost_core.objects.fields import JSONObject
from tests.recorded_data import rows
from tests.unit.webhook.test_webhook_bounds import calls_of

# 5 to 10 million a second, without the counting.
MOST_CALLS = 12_000_000


def many(count: int, entry: Callable[[int], JSONObject]) -> list[JSONObject]:
    return [entry(number) for number in range(count)]


def toleration(number: int) -> JSONObject:
    return {"key": f"t{number}", "operator": "Exists"}


def term(number: int) -> JSONObject:
    return {
        "matchExpressions": [
            {"key": f"k{number}", "operator": "In", "values": [f"v{index}" for index in range(20)]}
        ]
    }


def image(number: int) -> JSONObject:
    return {"image": f"example.org/i{number}:1"}


def values_of(
    *,
    common: int = 0,
    profiles: int = 0,
    pools: int = 0,
    rules: bool = False,
    options: int = 0,
    choices: int = 0,
    extra: int = 0,
    sets: int = 0,
) -> JSONObject:
    """common: entries of each list that all users, or all sets of placeholders, have.

    pools: so many profiles have nodes of their own; rules: the others have a toleration of their
    own.
    """

    def profile(number: int) -> JSONObject:
        own = {"node_selector": {"pool": f"p{number}"}} if number < pools else {}
        ruled = {"tolerations": [toleration(number)]} if rules else {}
        listed = {
            f"o{index}": {
                "choices": {
                    f"c{two}": {"kubespawner_override": {"node_selector": {f"k{index}": f"v{two}"}}}
                    for two in range(choices)
                }
            }
            for index in range(options)
        }
        return {
            "kubespawner_override": {**image(number), **own, **ruled},
            "profile_options": listed,
        }

    rest = {"tolerations": many(common, toleration), "requiredNodeTerms": many(common, term)}
    return {
        "singleuser": {
            "profileList": many(profiles, profile),
            "extraTolerations": rest["tolerations"],
            "extraNodeAffinity": {"required": rest["requiredNodeTerms"]},
            "initContainers": many(common, image),
            "nodeSelector": {f"l{number}": "x" for number in range(common)},
        },
        "prePuller": {
            "tolerations": many(common, lambda number: toleration(number + 1000)),
            "extraImages": {
                f"e{number}": {"name": f"example.org/e{number}", "tag": "1"}
                for number in range(extra)
            },
        },
        "placeholder": {"defaults": rest},
        "placeholders": many(sets, lambda number: {"name": f"s{number}", "replicas": 1}),
    }


@pytest.mark.parametrize(("values", "says"), rows("generator/greatest-values"))
def test_whatever_the_values_rendering_is_bounded_or_refused_by_its_key(
    values: JSONObject, says: str
) -> None:
    merged = parse_values(json.dumps(values_of(**values)).encode(), "prod.yaml")
    assert find_faults(merged) == []
    said: list[str] = []

    def rendered() -> None:
        try:
            render(merged, Release())
        except ValuesError as error:
            said.extend(str(fault) for fault in error.faults)

    assert calls_of(rendered) < MOST_CALLS
    assert bool(says) == bool(said)
    assert all(f"prod.yaml:1: {says}" in one for one in said[:1])


def test_more_faults_than_are_told_apart_are_told_of_the_list() -> None:
    events = [
        {"name": f"e{number}", "people": 9, "start": "0 9 * * 2", "timeZone": "Mars/Base"}
        for number in range(200)
    ]
    with pytest.raises(ValuesError, match=r"events\.booked: found more than"):
        render(
            parse_values(json.dumps({"events": {"booked": events}}).encode(), "prod.yaml"),
            Release(),
        )
