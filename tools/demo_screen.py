"""What both demos print: headings, coloured lines, and what Roost changed in a pod."""

from __future__ import annotations

import copy
import difflib
import os
import sys
from typing import TYPE_CHECKING

import yaml

from roost_core.objects.fields import JSONObject

if TYPE_CHECKING:
    from collections.abc import Mapping


_COLOURED = sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def colour(text: str, code: str) -> str:
    """`text` in a terminal colour, where the output is a terminal."""
    return f"\x1b[{code}m{text}\x1b[0m" if _COLOURED else text


def heading(text: str) -> None:
    """A new part of the story."""
    print(f"\n{colour(text, '1;36')}\n", flush=True)


def say(text: str = "") -> None:
    """One line of the story."""
    print(f"  {text}", flush=True)


def show_diff(before: JSONObject, after: JSONObject) -> None:
    """What Roost changed: the pod as the API server alone stores it, against the pod as it stands
    now.
    """
    old, new = (
        yaml.safe_dump(_essence(pod), sort_keys=True, width=110).splitlines()
        for pod in (before, after)
    )
    for line in difflib.unified_diff(old, new, lineterm="", n=2):
        if line.startswith(("---", "+++", "@@")):
            continue
        say(colour(f"  {line}", {"+": "32", "-": "31"}.get(line[:1], "2")))


def show_scores(table: Mapping[str, Mapping[str, int]]) -> None:
    """Points by node and plugin, of the plugins that tell the nodes apart; the best node first."""
    plugins = next(iter(table.values()))
    shown = [plugin for plugin in plugins if len({row.get(plugin) for row in table.values()}) > 1]
    say("Points, where nodes differ:" + ("" if shown else " none do"))
    for node, row in sorted(table.items(), key=lambda item: -sum(item[1].values())):
        points = "  ".join(f"{plugin} {row.get(plugin, 0):,}" for plugin in shown)
        say(f"  {node:8} total {sum(row.values()):>14,}  {points}")


def _essence(pod: JSONObject) -> JSONObject:
    """What the pod's author and Roost had to say, without what every API server adds, and without
    secrets.
    """
    pod = copy.deepcopy(pod)
    metadata = {
        key: pod["metadata"][key] for key in ("annotations", "labels") if pod["metadata"].get(key)
    }
    containers = [
        {key: c[key] for key in ("name", "image", "resources") if key in c}
        for c in pod["spec"]["containers"]
    ]
    spec = {
        key: pod["spec"][key]
        for key in ("affinity", "nodeSelector", "schedulerName")
        if key in pod["spec"]
    }
    return {"metadata": metadata, "spec": {**spec, "containers": containers}}
