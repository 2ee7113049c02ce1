"""What zero-to-jupyterhub's chart calls its objects."""

from __future__ import annotations

from generator.importing.source import HubSection, child


def object_name(hub: HubSection, release: str, name: str, *, in_namespace: bool = True) -> str:
    """The name of an object of the chart, as its `fullnameOverride` and `nameOverride` say.

    in_namespace: whether the object has a namespace. Else its name begins with the release's, too.
    """
    override = hub.data.get("fullnameOverride", "")
    if isinstance(override, str):
        # Absent, it is an empty text, as in the chart's values.
        prefix = override if override or in_namespace else release
        return f"{prefix}-{name}" if prefix else name
    # null: names are made of the release's and the chart's.
    given = child(hub.data, "nameOverride")
    chart = given if isinstance(given, str) and given else "jupyterhub"
    return f"{release}-{name}" if chart in release else f"{release}-{chart}-{name}"
