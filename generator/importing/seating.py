"""Whether a hub has a token for seating, and the lines that give it one."""

from __future__ import annotations

from typing import Final

from generator.importing.object_names import object_name
from generator.importing.result import Draft
from generator.importing.source import HubSection
from generator.values.lookups import child
from roost_core.placement.labels import SEATING_SERVICE

# zero-to-jupyterhub's Service and Secret of the hub.
_HUB: Final = "hub"
_SERVICE: Final = ("hub", "services", SEATING_SERVICE)
# For the hub's values, as docs/seated.md has them.
HUB_LINES: Final = f"""\
hub:
  services:
    {SEATING_SERVICE}: {{}}
  loadRoles:
    {SEATING_SERVICE}:
      services: [{SEATING_SERVICE}]
      scopes:
        - list:users
        - read:users:activity
        - read:groups
        - servers    # or servers!group=bio101, for one group alone
"""


def has_seating(hub: HubSection) -> bool:
    """Whether the hub has seating's service."""
    return child(hub.data, *_SERVICE) is not None


def map_seating(draft: Draft, hub: HubSection) -> None:
    """Switch seating on where the hub has its service."""
    if not has_seating(hub):
        return
    source = (*hub.path, *_SERVICE)
    draft.put("seating.enabled", True, source, "The hub has a token for it: docs/seated.md.")
    draft.put("events.enabled", True, source, "Who is seated is booked.")
    name = object_name(hub, draft.release, _HUB)
    base = (hub.text("hub.baseUrl") or "/").strip("/")
    path = f"/{base}/hub/api" if base else "/hub/api"
    if name != _HUB or base:
        draft.put("seating.hubUrl", f"http://{name}:8081{path}", source)
    if name != _HUB:
        draft.put("seating.tokenSecret", name, source)
