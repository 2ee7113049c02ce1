"""Ranges and defaults stand in the chart's schema and values alone. Who reads release.json checks
types.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from roost.controllers.controllers_settings import parse_settings as parse_controllers
from roost_core.objects.fields import JSONObject
from roost_core.release.reader import SettingsError
from roost_lab.recorder.recording.settings import parse_settings as parse_recorder
from tests.builders import release_document
from webhook.webhook_settings import parse_settings as parse_webhook

Path = tuple[str | int, ...]

HOME: Final = {"key": [{"annotation": "binder-repo"}], "builders": {}, "weights": [100, 50]}
WINDOW: Final = {
    "name": "lectures",
    "replicas": 9,
    "timeZone": "UTC",
    "start": "0 8 * * 1-5",
    "end": "0 18 * * 1-5",
}
# With every number and switch that release.json may have.
VALUES: Final = {
    "singleuser": {"image": {"name": "quay.io/hub/user", "tag": "1"}},
    "podClasses": {
        "user": {"warm": {"podsPerNode": 4, "spare": 2, "nodes": 10}},
        "dask": {"match": {"labels": {"app": "dask"}}, "home": HOME},
    },
    "placeholders": [
        {
            "name": "default",
            "replicas": 3,
            "windows": [WINDOW],
            "learn": {"min": 0, "max": 60, "timeZone": "UTC"},
        }
    ],
    "events": {"enabled": True},
}
# A schema accepts neither of them for any key.
FAR: Final = (-(10**9), 10**9)
# Kubernetes refuses a pod whose preferred terms have other weights than 1 to 100.
KUBERNETES_OWN: Final = ("join", "avoid", "weights", "weight")
# What is computed of them has no meaning below 0.
MONEY: Final = ("prices",)
# Of two keys, one may be no greater than the other.
PAIRED: Final = ("learn",)
VERSION: Final = ("version",)
# What a class leaves out is off for it.
OFF_WHEN_ABSENT: Final = ("imageGate", "warm")
# Templates and `roost book` alone read these, and what the hub's own limits are.
NOT_FOR_PROGRAMS: Final = ("profiles", "concurrentSpawnLimit", "resources")
# Kubernetes reads them.
OF_PODS: Final = ("podSecurityContext", "securityContext")


def scalars(node: object, path: Path = ()) -> Iterator[Path]:
    """Paths of all numbers and switches."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from scalars(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from scalars(value, (*path, index))
    elif isinstance(node, bool | int | float):
        yield path


DOCUMENT: Final = release_document(json.dumps(VALUES))
READ: Final = [path for path in scalars(DOCUMENT) if not {*path} & {*NOT_FOR_PROGRAMS, *OF_PODS}]


def holder(document: Any, path: Path) -> Any:
    """What has the last key of a path."""
    for step in path[:-1]:
        document = document[step]
    return document


def faults_of(document: JSONObject) -> list[str]:
    """All faults that the programs find in release.json."""
    faults: list[str] = []
    readers = (
        lambda: parse_controllers(document, None, 36),
        lambda: parse_webhook(document),
        lambda: parse_recorder(document),
    )
    for read in readers:
        try:
            read()
        except SettingsError as error:
            faults.extend(str(fault) for fault in error.faults)
    return faults


def test_a_rendered_document_has_no_fault_and_the_paths_are_its_keys() -> None:
    assert faults_of(DOCUMENT) == []
    assert ("placeholderMover", "evictionsPerMinute") in READ
    assert ("imageGate", "pullDeadlineSeconds") in READ
    assert ("podClasses", "dask", "home", "weights", 0) in READ
    assert ("placeholders", 0, "prices", "nodeHour") in READ
    assert ("recorder", "retentionDays") in READ


NUMBERS: Final = [
    path
    for path in READ
    if not {*path} & {*KUBERNETES_OWN, *MONEY, *PAIRED, *VERSION}
    and not isinstance(holder(DOCUMENT, path)[path[-1]], bool)
]
NEEDED: Final = [
    path
    for path in READ
    if not (path[0] == "podClasses" and {*path} & {*OFF_WHEN_ABSENT, "join", "avoid"})
    and not isinstance(holder(DOCUMENT, path), list)
]


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("path", NUMBERS, ids=str)
def test_a_reader_has_no_range_of_its_own(path: Path, far: int) -> None:
    document = copy.deepcopy(DOCUMENT)
    holder(document, path)[path[-1]] = far
    assert faults_of(document) == []


@pytest.mark.parametrize("path", NEEDED, ids=str)
def test_a_reader_has_no_default_of_its_own(path: Path) -> None:
    document = copy.deepcopy(DOCUMENT)
    holder(document, path).pop(path[-1])
    assert faults_of(document) != []


@pytest.mark.parametrize(
    ("price", "amount", "expected"),
    [
        # Another price is divided by it.
        ("nodeHour", 0, "found 0, expected an amount of money above 0."),
        ("nodeHour", -0.4, "found -0.4, expected an amount of money above 0."),
        ("nodeHour", "0.4", 'found "0.4", expected a number.'),
        ("waitingHour", -4, "found -4, expected an amount of money from 0 on."),
        ("monthlyCeiling", -1, "found -1, expected an amount of money from 0 on."),
    ],
)
def test_a_price_that_nothing_can_be_computed_from_is_a_fault(
    price: str, amount: object, expected: str
) -> None:
    document = copy.deepcopy(DOCUMENT)
    holder(document, ("placeholders", 0, "prices", price))[price] = amount
    assert faults_of(document) == [f"placeholders[0].prices.{price}: {expected}"]


@pytest.mark.parametrize("price", ["waitingHour", "monthlyCeiling"])
def test_waiting_may_be_worth_nothing(price: str) -> None:
    document = copy.deepcopy(DOCUMENT)
    holder(document, ("placeholders", 0, "prices", price))[price] = 0
    assert faults_of(document) == []
