"""Read what to replay from the command line: policies by name or file, and worlds by their changed assumptions."""

from __future__ import annotations

from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from generator.faults import Fault
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.checks import AssumptionsError, make_assumptions, read_assumption, show_assumption
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.pools_file import read_pools, refuse_replaced, with_pools
from roost_lab.simulator.setup.shipped import assumptions_of, describe, policy_files
from roost_lab.simulator.sweep.summary import WorldSetting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roost_lab.simulator.setup.policy import Policy

# How nodes are set up is the operator's choice, as the values are: it may differ between policies. Everything else that
# a policy needs belongs to the world, and is the same for all.
OF_NODES: Final = frozenset({"status_images"})
# Compared by default, as far as they are shipped: zero-to-jupyterhub with as many placeholders, mybinder.org, Roost.
USUAL_POLICIES: Final = ("z2jh-placeholders-packed", "kube-default", "roost")


class UnknownPolicyError(Exception):
    """No policy of that name is shipped."""


def load_policies(
    shipped: Sequence[str], values: Sequence[str]
) -> tuple[list[Policy], dict[str, str], dict[str, Mapping[str, Any]]]:
    """Policies; name -> what it is; name -> assumptions it needs. Raises as `load_policy`, UnknownPolicyError.

    shipped: names. values: each is one policy, files separated by commas, the later wins. Neither: USUAL_POLICIES.
    """
    names = tuple(shipped) or (() if values else _usual())
    unknown = [name for name in names if name not in policy_files()]
    if unknown:
        raise UnknownPolicyError(
            f"--policy {unknown[0]}: unknown policy.{_meant(unknown[0])} --list-policies shows them all; "
            "--values FILE takes a file of your own."
        )
    policies = [load_policy(name) for name in dict.fromkeys(names)]
    about = {name: describe(name) for name in names}
    needs = {name: needed for name in names if (needed := assumptions_of(name))}
    for text in dict.fromkeys(values):
        files = text.split(",")
        name = Path(files[-1]).stem
        # A shipped policy, or a file in another folder, may have the same name.
        if name in about:
            name = text
        policies.append(load_policy(name, files))
        about[name] = f"values of {text}"
    return policies, about, needs


def _usual() -> tuple[str, ...]:
    return tuple(name for name in USUAL_POLICIES if name in policy_files())


def _meant(name: str) -> str:
    near = get_close_matches(name, policy_files(), 2, 0.5)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def make_worlds(
    settings: Sequence[str] = (),
    sessions: str = "",
    vary: Sequence[str] = (),
    needs: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[WorldSetting]:
    """The first world, which reports show in full, then those with one assumption changed. Raises AssumptionsError.

    settings: NAME=VALUE each. sessions: lengths separated by commas. vary: NAME=VALUE,VALUE each. needs: policy ->
    assumptions it needs; those that aren't OF_NODES hold in all worlds, for all policies.
    """
    base: dict[str, Any] = {}
    for text in settings:
        name, value = read_assumption(text, "--set")
        if base.setdefault(name, value) != value:
            both = f"{show_assumption(base[name])} and {show_assumption(value)}"
            raise AssumptionsError([Fault("--set", 0, name, both, "one value", "--vary compares several.")])
    varied: dict[str, list[Any]] = {}
    for text in vary:
        name, equals, listed = text.partition("=")
        if not equals:
            raise AssumptionsError([Fault("--vary", 0, "", repr(text), "NAME=VALUE,VALUE")])
        varied.setdefault(name, []).extend(
            read_assumption(f"{name}={value}", "--vary")[1] for value in listed.split(",")
        )
    if sessions:
        lengths = [read_assumption(f"sessions={length}", "--sessions")[1] for length in sessions.split(",")]
        usual = base.get("sessions", Assumptions().sessions)
        if "sessions" in base and usual not in lengths:
            fix = "Leave out one of the two: reports show the first of --sessions in full."
            raise AssumptionsError([Fault("--set", 0, "sessions", usual, f"one of --sessions {sessions}", fix)])
        base["sessions"] = usual if usual in lengths else lengths[0]
        varied = {"sessions": [*lengths, *varied.pop("sessions", ())], **varied}
    base |= _needed(needs or {}, base, varied)
    worlds = [_world(base, "--set")]
    for name, values in varied.items():
        for value in values:
            world = _world(base | {name: value}, "--vary")
            if world not in worlds:
                worlds.append(world)
    return worlds


def in_pools(worlds: Sequence[WorldSetting], file: str, given: Mapping[str, Sequence[str]]) -> list[WorldSetting]:
    """The worlds with the pools of a file. Raises AssumptionsError.

    given: option -> NAME=VALUE or NAME=VALUE,VALUE each; those about the only pool contradict the file.
    """
    names = {option: [text.partition("=")[0].strip() for text in texts] for option, texts in given.items()}
    refuse_replaced(names, file)
    pooled = []
    for world in worlds:
        pools = read_pools(file, world.assumptions)
        pooled.append(WorldSetting({**world.setting, "pools": file}, with_pools(world.assumptions, pools)))
    return pooled


def needed_of_nodes(needs: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Policy -> what it alone has otherwise; policies without any are left out."""
    of_nodes = {
        policy: {name: value for name, value in needed.items() if name in OF_NODES} for policy, needed in needs.items()
    }
    return {policy: needed for policy, needed in of_nodes.items() if needed}


def _needed(
    needs: Mapping[str, Mapping[str, Any]], asked_for: Mapping[str, Any], varied: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """What all policies get because one needs it. Raises AssumptionsError where the command line contradicts it."""
    shared: dict[str, Any] = {}
    needed_by: dict[str, str] = {}
    faults = []
    for policy, needed in needs.items():
        make_assumptions(needed, f"policy {policy}")
        for name, value in needed.items():
            expected = f"{show_assumption(value)}, which policy {policy} needs"
            fix = "Leave it out, or compare other policies: a copy of the values file, named with --values, needs none."
            if asked_for.get(name, value) != value:
                faults.append(Fault("--set", 0, name, show_assumption(asked_for[name]), expected, fix))
            others = [other for other in varied.get(name, ()) if other != value]
            if others:
                faults.append(Fault("--vary", 0, name, ", ".join(map(show_assumption, others)), expected, fix))
            if name in OF_NODES:
                continue
            if shared.setdefault(name, value) != value:
                other = f"{show_assumption(shared[name])} as policy {needed_by[name]}"
                faults.append(Fault(f"policy {policy}", 0, name, show_assumption(value), other, "Compare them apart."))
            needed_by.setdefault(name, policy)
    if faults:
        raise AssumptionsError(faults)
    return shared


def _world(values: Mapping[str, Any], place: str) -> WorldSetting:
    usual = asdict(Assumptions())
    assumptions = make_assumptions(values, place)
    return WorldSetting({name: value for name, value in values.items() if value != usual[name]}, assumptions)
