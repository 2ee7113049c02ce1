"""`roost scheduler-config`: what a cloud provider lets one set of its clusters' scheduler, from the values."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from generator.faults import UsageError
from generator.pipeline import check
from generator.render.provider_schedulers import scheduler_request
from generator.values.files import read_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.commands.render import RenderOptions

PROVIDERS: Final = ("eks", "aks", "gke")
# What to do with the printed text; stdout holds nothing else.
_NEXT: Final = {
    "eks": "Next: aws eks update-cluster-config --name CLUSTER --cli-input-json file://THIS-FILE",
    "aks": "Next: kubectl apply this on a cluster with --enable-upstream-kubescheduler-user-configuration, "
    "and wait for Succeeded in kubectl get schedulerconfiguration upstream.",
    "gke": "Next: run this with your cluster's name and its --location.",
}


def run(options: RenderOptions, target: str | None) -> int:
    """Print the provider's object or command to stdout, the next step to stderr. Raises GeneratorError."""
    merged = read_values(options.files, options.settings)
    sys.stderr.write("".join(f"{warning}\n" for warning in check(merged, options.release)))
    values: Mapping[str, Any] = merged.values
    asked = target or str(values["scheduler"]["target"])
    if asked not in PROVIDERS:
        raise UsageError(
            f"scheduler.target: found {asked}, expected one of {', '.join(PROVIDERS)}. "
            "Name the provider by --target, or leave its scheduler as it is."
        )
    sys.stdout.write(scheduler_request(values, options.release, asked))
    sys.stderr.write(f"{_NEXT[asked]}\n")
    return 0
