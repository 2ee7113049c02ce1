"""No pods but Roost's own fillers rank below what Roost places: the scheduler could delete them for it."""

from typing import Final

from roost.doctor.contract import Check, Finding, Install, Told
from roost.doctor.evidence import some
from roost_core.placement.priorities import foreign_priority


def _check(install: Install) -> Told:
    yield "PriorityClasses"
    classes = install.client.get("/apis/scheduling.k8s.io/v1/priorityclasses")["items"]
    below = {body["metadata"]["name"]: value for body in classes if (value := foreign_priority(body)) is not None}
    if below and install.values["imageGate"]["mode"] == "requireLabel":
        yield Finding(
            "warning",
            f"Pods of {_named(below)} rank below users. Kept off nodes that are pulling images, users could take their "
            "place, so the image gate only prefers nodes that have the images.",
            "Nothing need be done. Without such classes, the gate keeps users off those nodes.",
        )
    given = [name for name, one in install.values["podClasses"].items() if one.get("resources")]
    if below and given:
        yield Finding(
            "warning",
            f"Pods of {_named(below)} rank below those of class {', '.join(given)}, which get no requests: the "
            "scheduler could delete such pods for them.",
            "Nothing need be done, they run as without Roost. Without such classes, they get requests.",
        )
    settings = install.values["priorityClasses"]
    pulled = {name: value for name, value in below.items() if value < settings["puller"]}
    if pulled and settings["enabled"] and install.values["prePuller"]["enabled"]:
        yield Finding(
            "warning",
            f"Pods of {_named(pulled)} rank below Roost's puller: on a full node it takes their place.",
            f"Set priorityClasses.puller to {min(pulled.values())} or less, and priorityClasses.placeholder below.",
        )


def _named(classes: dict[str, int]) -> str:
    return some([f"PriorityClass {name} ({value})" for name, value in sorted(classes.items())])


CHECK: Final = Check("priorities", _check)
