"""Read what several parts of zero-to-jupyterhub's values have: pod resources, pull secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from generator.checks.contract import listing
from generator.importing.quantities import cpu_quantity, quantity
from generator.importing.result import Draft
from generator.importing.source import HubSection, Path, child


def kubernetes_resources(
    draft: Draft, section: HubSection, at: Path, resources: Mapping[str, object]
) -> dict[str, dict[str, str]]:
    """A pod's resources with every quantity as text; anything else is noted and left out."""
    amounts: dict[str, dict[str, str]] = {}
    for part in ("requests", "limits"):
        quantities = resources.get(part)
        if not isinstance(quantities, Mapping):
            continue
        amounts[part] = {}
        for name, value in quantities.items():
            amount = quantity(value)
            if amount is None or amount < 0:
                if value is not None:
                    draft.reject(section, (*at, part, name), "expected a Kubernetes quantity")
                continue
            if isinstance(value, str):
                amounts[part][name] = value.strip()
            elif name == "cpu":
                amounts[part][name] = cpu_quantity(value) or "0"
            else:
                amounts[part][name] = str(int(amount))
    return amounts


def secret_names(secrets: object) -> list[str]:
    """Names of pull secrets, each a name or an object with one."""
    named = [
        child(item, "name") if isinstance(item, Mapping) else item for item in listing(secrets)
    ]
    return [name for name in named if isinstance(name, str) and name]


def map_pull_secrets(draft: Draft, hub: HubSection, dotted: str) -> None:
    """Roost has one list for all of its pods."""
    put_pull_secrets(draft, secret_names(hub.items(dotted)), (*hub.path, *dotted.split(".")))


def put_pull_secrets(draft: Draft, names: Sequence[str], source: Path) -> None:
    """Add names to the list of all of Roost's pods."""
    path = ("imagePullSecrets",)
    known = [name for piece in draft.pieces if piece.path == path for name in listing(piece.value)]
    draft.pieces = [piece for piece in draft.pieces if piece.path != path]
    draft.put("imagePullSecrets", list(dict.fromkeys([*known, *names])), source)


def object_name(hub: HubSection, release: str, name: str, *, in_namespace: bool = True) -> str:
    """What zero-to-jupyterhub calls an object: by default, those without a namespace are prefixed
    with the release.
    """
    # Absent, it is an empty text, as in the chart's values.
    override = hub.data.get("fullnameOverride", "")
    if isinstance(override, str):
        prefix = override
        if not override and not in_namespace:
            prefix = release
        return f"{prefix}-{name}" if prefix else name
    # null: names are made of the release's and the chart's.
    chart = child(hub.data, "nameOverride")
    chart = chart if isinstance(chart, str) and chart else "jupyterhub"
    return f"{release}-{name}" if chart in release else f"{release}-{chart}-{name}"
