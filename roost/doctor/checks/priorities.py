"""No pods but Roost's own fillers rank below what Roost places: the scheduler could delete them for
it.
"""

from roost.doctor.evidence import some
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install
from roost_core.kube.client import list_all
from roost_core.placement.priorities import foreign_priority


def check(install: Install) -> CheckReport:
    yield "PriorityClasses"
    classes = list_all(install.client, "/apis/scheduling.k8s.io/v1/priorityclasses")
    below = {
        body["metadata"]["name"]: value
        for body in classes
        if (value := foreign_priority(body)) is not None
    }
    given = [
        name
        for name, pod_class in install.values["podClasses"].items()
        if pod_class.get("resources")
    ]
    spared: list[str] = []
    if install.values["imageGate"]["mode"] == "requireLabel":
        spared.append("the image gate only prefers nodes")
    if given:
        spared.append(f"pods of class {', '.join(given)} get no requests")
    if below and spared:
        yield warning(
            f"Pods of {_named(below)} rank below users. So that none is deleted for want of room, "
            f"{' and '.join(spared)}.",
            "Nothing need be done. Without such classes, the gate keeps users off nodes that are"
            " pulling images, and builds get requests.",
        )
    settings = install.values["priorityClasses"]
    pulled = {name: value for name, value in below.items() if value < settings["puller"]}
    if pulled and settings["enabled"] and install.values["prePuller"]["enabled"]:
        fix = (
            f"Set priorityClasses.puller to {min(pulled.values())} or less, and"
            " priorityClasses.placeholder below."
        )
        yield warning(
            f"Pods of {_named(pulled)} rank below Roost's puller: on a full node it takes their"
            " place.",
            fix,
        )


def _named(classes: dict[str, int]) -> str:
    return some([f"PriorityClass {name} ({value})" for name, value in sorted(classes.items())])
