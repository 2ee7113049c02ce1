"""Labels of nodes go with what their kubelets report."""

from typing import Final

from roost.doctor.conditions import State, conditions
from roost.doctor.contract import Install, Told, warning
from roost.doctor.evidence import count, node_age_seconds, some
from roost_core.placement.labels import PULLING, pulled_prefix

_PULL_SECONDS: Final = 1800.0


def check(install: Install) -> Told:
    prefix = pulled_prefix(install.release.name, install.release.namespace)
    yield count(len(install.nodes), "node")
    old = [
        node.name
        for node in install.nodes
        if any(key.startswith(prefix) and value == PULLING for key, value in node.labels.items())
        and node_age_seconds(install, node) > _PULL_SECONDS
    ]
    if old:
        yield warning(
            f"{len(old)} nodes older than {_PULL_SECONDS / 60:.0f} minutes lack an image that users"
            f" need: {some(old)}.",
            "kubectl describe node shows Roost's Events. Does the puller run there, and can the"
            " node pull it?",
            follows=conditions(State.UNLED, "controllers") | conditions(State.BROKEN, "puller"),
        )
