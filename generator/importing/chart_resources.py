"""Read the `resources` of a pod as Kubernetes takes them: those of core pods, builds and pullers.

What a user requests, in KubeSpawner's own words: `user_sizes.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from generator.importing.quantities import cpu_quantity, quantity
from generator.importing.result import Draft
from generator.importing.source import HubPath, HubSection


def kubernetes_resources(
    draft: Draft, section: HubSection, at: HubPath, resources: Mapping[str, object]
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
