"""Read from the command line what to replay: the policies, and the worlds by their assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from generator.faults import Fault, UsageError
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.checks import (
    AssumptionsError,
    make_assumptions,
    read_assumption,
    show_assumption,
)
from roost_lab.simulator.setup.policy import Policy, load_policy
from roost_lab.simulator.setup.shipped_policies import describe, policy_files
from roost_lab.simulator.setup.worlds import WORLDS
from roost_lab.simulator.sweep.summary import WorldSetting

# The policies that are compared by default: zero-to-jupyterhub with as many placeholders as Roost,
# and Roost.
USUAL_POLICIES: Final = ("z2jh-placeholders-packed", "roost")


def load_policies(
    shipped: Sequence[str], values: Sequence[str]
) -> tuple[list[Policy], dict[str, str]]:
    """The policies, and for each name what the policy is.

    shipped: names of policies that Roost ships. values: each is one policy: values files, separated
    by commas, of which the later ones win. With neither, they are USUAL_POLICIES.

    Raises UsageError for an unknown name, and as `load_policy` does.
    """
    names = tuple(shipped)
    if not shipped and not values:
        names = USUAL_POLICIES
    unknown = [name for name in names if name not in policy_files()]
    if unknown:
        raise UsageError(
            f"--policy {unknown[0]}: unknown policy.{_hint(unknown[0])} --list-policies shows them"
            " all; --values FILE takes a file of your own."
        )
    policies = [load_policy(name) for name in dict.fromkeys(names)]
    about = {name: describe(name) for name in names}
    for text in dict.fromkeys(values):
        files = text.split(",")
        name = Path(files[-1]).stem
        # A shipped policy, or a file in another folder, may have the same name.
        if name in about:
            name = text
        policies.append(load_policy(name, files))
        about[name] = f"values of {text}"
    return policies, about


def _hint(name: str) -> str:
    """A question whether a similar policy was meant; "" where none is similar."""
    near = get_close_matches(name, policy_files(), 2, 0.5)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def make_worlds(
    settings: Sequence[str] = (), vary: Sequence[str] = (), world: str = ""
) -> list[WorldSetting]:
    """The first world, which reports show in full, then worlds with one assumption changed.

    settings: each NAME=VALUE, for all worlds. vary: each NAME=VALUE,VALUE: a world for each value.
    world: one of WORLDS, to whose assumptions the settings are added; "": the usual assumptions.

    Raises AssumptionsError.
    """
    base: dict[str, Any] = {}
    for text in settings:
        name, value = read_assumption(text, "--set")
        if base.setdefault(name, value) != value:
            both = f"{show_assumption(base[name])} and {show_assumption(value)}"
            raise AssumptionsError(
                [Fault("--set", 0, name, both, "one value", "--vary compares several.")]
            )
    if world:
        base = {**WORLDS[world], **base}
    varied: dict[str, list[Any]] = {}
    for text in vary:
        name, equals, listed = text.partition("=")
        if not equals:
            raise AssumptionsError([Fault("--vary", 0, "", repr(text), "NAME=VALUE,VALUE")])
        for value_text in listed.split(","):
            # It gives the name without spaces around it.
            known_name, value = read_assumption(f"{name}={value_text}", "--vary")
            varied.setdefault(known_name, []).append(value)
    worlds = [_world(base, "--set")]
    for name, values in varied.items():
        for value in values:
            other = _world(base | {name: value}, "--vary")
            if other not in worlds:
                worlds.append(other)
    return worlds


def _world(values: Mapping[str, Any], place: str) -> WorldSetting:
    """The usual assumptions with these values. place: the option that gave them, for faults."""
    usual = asdict(Assumptions())
    assumptions = make_assumptions(values, place)
    setting = {name: value for name, value in values.items() if value != usual[name]}
    return WorldSetting(setting, assumptions)
