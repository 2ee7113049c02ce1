"""Make of texts what is to be replayed: policies by name or file, and worlds by what differs from the usual one."""

from __future__ import annotations

from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from generator.faults import Fault
from simulator.assumptions import Assumptions
from simulator.checks import AssumptionsError, make_assumptions, read_assumption
from simulator.policy import load_policy
from simulator.shipped import assumptions_of, describe, policy_files
from simulator.summary import World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simulator.policy import Policy

# Compared when nothing is named, as far as they are shipped: what most have, what Roost has by itself, what it advises.
USUAL_POLICIES: Final = ("z2jh", "roost", "recommended")


class UnknownPolicyError(Exception):
    """No policy of that name is shipped; the message has those that are."""


def load_policies(
    shipped: Sequence[str], values: Sequence[str]
) -> tuple[list[Policy], dict[str, str], dict[str, Mapping[str, Any]]]:
    """Policies; name -> what it is; name -> assumptions it changes. Raises as `load_policy`, UnknownPolicyError.

    shipped: names. values: each is one policy, files with commas between, the later wins. Neither: USUAL_POLICIES.
    """
    names = tuple(shipped) or (() if values else _usual())
    unknown = [name for name in names if name not in policy_files()]
    if unknown:
        raise UnknownPolicyError(
            f"--policy {unknown[0]}: no such policy is shipped.{_meant(unknown[0])} --list-policies shows them all; "
            "--values FILE takes a file of your own."
        )
    policies = [load_policy(name) for name in dict.fromkeys(names)]
    about = {name: describe(name) for name in names}
    needs = {name: needed for name in names if (needed := assumptions_of(name))}
    for text in dict.fromkeys(values):
        files = text.split(",")
        name = Path(files[-1]).stem
        # The name of a shipped policy, or of another folder's file, would hide it.
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


def make_worlds(settings: Sequence[str] = (), sessions: str = "", vary: Sequence[str] = ()) -> list[World]:
    """The world that is told in full, then those with one assumption changed. Raises AssumptionsError.

    settings: NAME=VALUE each. sessions: lengths with commas between. vary: NAME=VALUE,VALUE each.
    """
    base: dict[str, Any] = {}
    for text in settings:
        name, value = read_assumption(text, "--set")
        base[name] = value
    varied: dict[str, list[Any]] = {}
    if sessions:
        lengths = [read_assumption(f"sessions={one}", "--sessions")[1] for one in sessions.split(",")]
        usual = base.get("sessions", Assumptions().sessions)
        base["sessions"] = usual if usual in lengths else lengths[0]
        varied["sessions"] = lengths
    for text in vary:
        name, equals, rest = text.partition("=")
        if not equals:
            raise AssumptionsError([Fault("--vary", 0, "", repr(text), "NAME=VALUE,VALUE")])
        varied[name] = [read_assumption(f"{name}={one}", "--vary")[1] for one in rest.split(",")]
    worlds = [_world(base, "--set")]
    for name, values in varied.items():
        for value in values:
            world = _world(base | {name: value}, "--vary")
            if world not in worlds:
                worlds.append(world)
    return worlds


def _world(values: Mapping[str, Any], place: str) -> World:
    usual = asdict(Assumptions())
    assumptions = make_assumptions(values, place)
    return World({name: value for name, value in values.items() if value != usual[name]}, assumptions)
