"""Find the repository of a pod. It decides the pod's home.

The text isn't changed. `Org/Repo` and `org/repo` are different repositories, and so are `x` and
`x.git`: BinderHub also sees them so. Otherwise homes would change when a hub switches to Roost, and
the nodes' caches would be lost. A user can choose some of these texts, so they decide only where a
pod is placed, and never what it may do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from roost_core.objects import fields
from roost_core.objects.image_references import image_repository
from roost_core.release.pod_classes import KeySource

# Characters of a repository that count, so that a long text costs little. URLs of repositories are
# shorter.
_MAX_LENGTH: Final = 4096


class PodTexts(NamedTuple):
    """The parts of a pod that may name its repository."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    containers: Sequence[fields.JSONObject]

    def environment(self, name: str) -> str:
        """The value of an environment variable in the first main container that has it.

        "": no container has it, or its value isn't plain text. Raises MalformedObjectError.
        """
        for container in self.containers:
            for variable in fields.child_list(container, "env", "spec.containers[]") or ():
                if type(variable) is dict and variable.get("name") == name:
                    value = variable.get("value")
                    return value if type(value) is str else ""
        return ""


def repository_of(pod: PodTexts, sources: Sequence[KeySource]) -> str:
    """Return the repository that the first of `sources` names; "": none does.

    Raises MalformedObjectError.
    """
    for source in sources:
        if source.kind == "annotation":
            repository = pod.annotations.get(source.name, "")
        elif source.kind == "label":
            repository = pod.labels.get(source.name, "")
        elif source.kind == "env":
            repository = pod.environment(source.name)
        else:
            image = pod.containers[0].get("image") if pod.containers else None
            repository = image_repository(image) if isinstance(image, str) and image else ""
        if repository:
            return repository[:_MAX_LENGTH]
    return ""
