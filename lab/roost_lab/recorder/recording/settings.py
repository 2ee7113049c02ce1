"""Read release.json, the document that the chart renders for `roost record`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roost_core.placement.labels import HOSTNAME_LABEL
from roost_core.placement.pullers import Puller, read_pullers, selects
from roost_core.placement.settings import KeySource, PodClass, read_pod_classes
from roost_core.placement.settings_reader import DNS_NAME, Document, Reader, SettingsError, load_object

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VERSION: Final = 1
# BinderHub gives a user's pod no label or annotation with the repository; this variable is the build's own text.
BINDER_REPOSITORY: Final = KeySource("env", "BINDER_REPO_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderSettings:
    """The settings of `roost record`."""

    release: str
    namespace: str
    classes: Mapping[str, PodClass]
    # Where to look for a pod's repository, in this order.
    key_sources: tuple[KeySource, ...]
    # Empty when the gate labels no nodes.
    pullers: tuple[Puller, ...]
    # Days after which records of what has ended are deleted; 0: never.
    retention_days: int
    # Other hubs' pods have classes, too, by the same labels.
    # First 12 hex digits of the document's SHA-256.
    settings_hash: str

    def gate_labels(self, node_labels: Mapping[str, str]) -> frozenset[str]:
        """The labels that the image gate sets when a node with these labels has all its images."""
        name = node_labels.get(HOSTNAME_LABEL, "")
        return frozenset().union(*(puller.labels for puller in self.pullers if selects(puller, name, node_labels)))


def load_settings(path: Path) -> RecorderSettings:
    """Read release.json. Raises SettingsError with every fault at once."""
    return parse_settings(*load_object(str(path), path.read_bytes))


def parse_settings(document: Document, settings_hash: str = "") -> RecorderSettings:
    """Check the document. Raises SettingsError with every fault at once."""
    read = Reader()
    if document.get("version") != VERSION:
        read.fault("version", document.get("version"), str(VERSION))
    release = read.name(document.get("release"), "release", DNS_NAME, "a release's name")
    namespace = read.name(document.get("namespace"), "namespace", DNS_NAME, "a namespace's name")
    classes = read_pod_classes(read, document)
    retention_days = read.whole(document.get("retentionDays"), "retentionDays", 0, 36_500)
    pullers = read_pullers(read, document)
    if read.faults:
        raise SettingsError(read.faults)
    homes = [pod_class.home for pod_class in classes.values() if pod_class.home is not None]
    sources = dict.fromkeys([source for home in homes for source in home.key] + [BINDER_REPOSITORY])
    return RecorderSettings(
        release=release,
        namespace=namespace,
        classes=classes,
        key_sources=tuple(sources),
        pullers=pullers.labelling,
        retention_days=retention_days,
        settings_hash=settings_hash,
    )
