"""Read what a served hub's ConfigMap says to the controllers of its central release.

Whoever may write ConfigMaps in the hub's namespace writes it. The controllers act as the hub's own account, so the API
server bounds what it can ask for; here is refused what would reach beyond the namespace all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roost.controllers.settings import ControllersSettings, parse_settings
from roost_core.placement.hub_documents import check_reach, load_hub_document
from roost_core.placement.settings_reader import DNS_LABEL, Reader, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_core.placement.settings_reader import Document

# Of all sets of placeholders together. Each takes up to 3 ms whenever one of them begins or ends.
MAX_WINDOWS: Final = 200
# Of all pullers together, as in each puller's list. Each is a label on each node that belongs to the puller.
MAX_IMAGES: Final = 500
# Each is compared with each node.
MAX_PULLERS: Final = 100


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
        expected = (
            "nothing, as the central release would fetch an address of the hub's choice from inside its own network: "
            "book with ConfigMaps of the hub's namespace"
        )
        read.fault("events.calendarUrl", events["calendarUrl"], expected)
    _check_amounts(read, document)
    if read.faults:
        raise SettingsError(read.faults)
    settings = parse_settings(document, scheduler_configuration, minor)
    return HubSettings(settings=settings, account=account, lease=lease)


def _check_amounts(read: Reader, document: Document) -> None:
    """Add a fault for each list that would take more than a hub's share of the thread that plans for all of them."""
    windows = sum(_lengths(read, document.get("placeholders"), "placeholders", "windows"))
    if windows > MAX_WINDOWS:
        read.fault("placeholders[].windows", windows, f"at most {MAX_WINDOWS} windows in all sets")
    images = list(_lengths(read, read.mapping(document.get("gate"), "gate").get("pullers"), "gate.pullers", "images"))
    if len(images) > MAX_PULLERS:
        read.fault("gate.pullers", len(images), f"at most {MAX_PULLERS} pullers")
    if sum(images) > MAX_IMAGES:
        read.fault("gate.pullers[].images", sum(images), f"at most {MAX_IMAGES} images of all pullers")


def _lengths(read: Reader, value: object, key: str, within: str) -> Iterator[int]:
    """Yield the length of the list `within` of each entry."""
    for index, entry in enumerate(read.items(value, key)):
        at = f"{key}[{index}]"
        yield len(read.items(read.mapping(entry, at).get(within), f"{at}.{within}"))
