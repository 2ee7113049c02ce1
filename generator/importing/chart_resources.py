"""Read the `resources` of a pod as Kubernetes takes them: those of core pods, builds and pullers.

`user_sizes.py` reads what a user requests, which the hub's values say in KubeSpawner's words.
"""

from __future__ import annotations

from collections.abc import Mapping

from generator.importing.quantities import cpu_quantity, quantity
from generator.importing.result import Draft
from generator.importing.source import HubPath, HubSection


def kubernetes_resources(
    draft: Draft, section: HubSection, at: HubPath, resources: Mapping[str, object]
) -> dict[str, dict[str, str]]:
    """A pod's requests and limits, by resource, with every quantity as text.

    What isn't a quantity of 0 or more is left out, and `draft` notes it at `at` and its key.
    """
    amounts: dict[str, dict[str, str]] = {}
    for part in ("requests", "limits"):
        quantities = resources.get(part)
        if not isinstance(quantities, Mapping):
            continue
        amounts[part] = {}
        for name, value in quantities.items():
            if value is None:
                continue
            amount = quantity(value)
            if amount is None or amount < 0:
                draft.reject(section, (*at, part, name), "expected a Kubernetes quantity")
                continue
            if isinstance(value, str):
                amounts[part][name] = value.strip()
            elif name == "cpu":
                amounts[part][name] = cpu_quantity(value) or "0"
            else:
                amounts[part][name] = str(int(amount))
    return amounts
