"""Find which repository a pod belongs to: the key of its home.

The text is taken as it stands. `Org/Repo` and `org/repo`, `x` and `x.git` are different keys, as
they are to BinderHub: folding them together would move every warm cache on a switch. A user can
choose some of these texts, so they are hints for placement and never permissions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from roost_core.objects import fields
from roost_core.objects.image_references import image_repository
from roost_core.release.pod_classes import KeySource

# Longer than any URL of a repository provider; it limits the cost of one pod.
_MAX_KEY: Final = 4096


class PodTexts(NamedTuple):
    """What of a pod's JSON may name its repository."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    containers: Sequence[fields.JSONObject]

    def environment(self, name: str) -> str:
        """Value of an environment variable given as plain text in any main container; "" when there
        is none.

        Raises MalformedObjectError.
        """
        for container in self.containers:
            for variable in fields.child_list(container, "env", "spec.containers[]") or ():
                if type(variable) is dict and variable.get("name") == name:
                    value = variable.get("value")
                    return value if type(value) is str else ""
        return ""


def repository_of(pod: PodTexts, sources: Sequence[KeySource]) -> str:
    """Return the first repository named in `sources`, "" if none is."""
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
            return repository[:_MAX_KEY]
    return ""
