"""What zero-to-jupyterhub's chart calls its objects, and called Kubernetes' images once."""

from __future__ import annotations

from typing import Final

from generator.importing.source import HubSection
from generator.values.lookups import child

# Where older charts took Kubernetes' images from: new tags need not be there.
_OLD_REGISTRIES: Final = ("k8s.gcr.io/", "gcr.io/google_containers/", "gcr.io/google-containers/")


def object_name(hub: HubSection, release: str, name: str, *, in_namespace: bool = True) -> str:
    """The name of an object of the chart, as its `fullnameOverride` and `nameOverride` say.

    in_namespace: whether the object has a namespace. Else its name begins with the release's, too.
    """
    override = hub.data.get("fullnameOverride", "")
    if isinstance(override, str):
        # Absent, it is an empty text, as in the chart's values.
        prefix = override or ("" if in_namespace else release)
        return f"{prefix}-{name}" if prefix else name
    # null: names are made of the release's and the chart's.
    given = child(hub.data, "nameOverride")
    chart = given if isinstance(given, str) and given else "jupyterhub"
    return f"{release}-{name}" if chart in release else f"{release}-{chart}-{name}"


def is_of_an_old_chart(image: str) -> bool:
    """Whether an image of Kubernetes' own has the name that older charts gave it."""
    return image.startswith(_OLD_REGISTRIES)
