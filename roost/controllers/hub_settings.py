"""Read what a served hub's ConfigMap says to the controllers of its central release.

Whoever may write ConfigMaps in the hub's namespace writes it. The controllers act as the hub's own account, so the API
server bounds what it can ask for; here is refused what would reach beyond the namespace all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roost.controllers.settings import ControllersSettings, parse_settings
from roost_core.placement.hub_documents import check_reach, load_hub_document
from roost_core.placement.settings_reader import DNS_LABEL, Reader, SettingsError

if TYPE_CHECKING:
    from roost_core.placement.settings_reader import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSettings:
    """One hub, as its document says."""

    settings: ControllersSettings
    # The ServiceAccount to act as, and the Lease of who acts; both in the hub's namespace.
    account: str
    lease: str

    @property
    def hub(self) -> str:
        """`<release>.<namespace>`."""
        return f"{self.settings.release}.{self.settings.namespace}"


def read_hub_settings(
    text: bytes, namespace: str, central: tuple[str, str], scheduler_configuration: Document | None, minor: int
) -> HubSettings:
    """Read controllers.json of the hub in `namespace`; central: name and namespace of the central release.

    scheduler_configuration: the central scheduler's, which binds the hub's pods. Raises SettingsError with all faults.
    """
    document = load_hub_document(text)
    read = Reader()
    check_reach(read, document, namespace, central)
    account = read.name(document.get("account"), "account", DNS_LABEL, "a ServiceAccount's name")
    lease = read.name(document.get("lease"), "lease", DNS_LABEL, "a Lease's name")
    events = read.mapping(document.get("events"), "events")
    if events.get("calendarUrl"):
        # It would be fetched from within the central release's network.
        read.fault("events.calendarUrl", events["calendarUrl"], "nothing: book with ConfigMaps of the hub's namespace")
    if read.faults:
        raise SettingsError(read.faults)
    settings = parse_settings(document, scheduler_configuration, minor)
    return HubSettings(settings=settings, account=account, lease=lease)
