"""No node keeps a taint of its start that nobody takes off."""

from typing import Final

from roost.doctor.evidence import NODE_POOLS, count, node_age_seconds, some
from roost.doctor.findings import CheckReport, error, warning
from roost.doctor.install import Install
from roost_core.placement.labels import STARTUP_PREFIXES, startup_taint

# No start of a node takes longer.
_START_SECONDS: Final = 1800.0


def check(install: Install) -> CheckReport:
    taint_of_roost = startup_taint(install.release.name, install.release.namespace)
    mode = install.values["imageGate"]["mode"]
    roost_removes_it = mode == "startupTaint" and install.component("controllers") is not None
    yield "startup taints of nodes and NodePools"
    # Keys of the startup taints that NodePools give.
    keys: set[str] = set()
    for pool in (install.client.find(NODE_POOLS) or {}).get("items", []):
        node_spec = (pool["spec"].get("template") or {}).get("spec") or {}
        keys.update(taint["key"] for taint in node_spec.get("startupTaints") or [])
    if taint_of_roost in keys and not roost_removes_it:
        yield error(
            f"A NodePool gives its nodes the startup taint {taint_of_roost}, and nobody takes it"
            f" off: imageGate.mode is {mode}.",
            "Set imageGate.mode: startupTaint, with the controllers on, or take the taint out of"
            " the NodePool.",
        )
    stuck: list[str] = []
    for node in install.nodes:
        if node_age_seconds(install, node) > _START_SECONDS:
            stuck += [
                f"{node.name} ({taint.key})"
                for taint in node.taints
                if taint.key.startswith(STARTUP_PREFIXES) or taint.key in keys
            ]
    if stuck:
        yield warning(
            f"{count(len(stuck), 'startup taint')} still there {_START_SECONDS / 60:.0f} minutes"
            f" after their nodes came: {some(stuck)}. cluster-autoscaler expects such nodes to"
            " become usable, and adds no others.",
            "Whoever should take the taint off doesn't: for Roost's own, the controllers (check"
            " leaders).",
        )
