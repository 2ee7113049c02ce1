"""Read release.json, the document that the chart renders for `roost record`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roost_core.objects.node import HOSTNAME_LABEL
from roost_core.release.image_gate import Puller, selects
from roost_core.release.pod_classes import KeySource, PodClass
from roost_core.release.reader import Document, Reader, load_document
from roost_core.release.release_settings import ReleaseSettings

# BinderHub gives a user's pod no label or annotation with the repository; this variable is the
# build's own text.
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
    # First 12 hex digits of the document's SHA-256.
    settings_hash: str

    def gate_labels(self, node_labels: Mapping[str, str]) -> frozenset[str]:
        """The labels that the image gate sets when a node with these labels has all images that
        pullers bring there.
        """
        name = node_labels.get(HOSTNAME_LABEL, "")
        return frozenset().union(
            *(puller.labels for puller in self.pullers if selects(puller, name, node_labels))
        )


def load_settings(path: Path) -> RecorderSettings:
    """Read release.json. Raises SettingsError with every fault at once."""
    return parse_settings(*load_document(str(path), path.read_bytes))


def parse_settings(document: Document, settings_hash: str = "") -> RecorderSettings:
    """Check the document. Raises SettingsError with every fault at once."""
    release = ReleaseSettings(Reader(), document, settings_hash)
    homes = [pod_class.home for pod_class in release.classes.values() if pod_class.home is not None]
    recorder = release.read.mapping(document.get("recorder"), "recorder")
    settings = RecorderSettings(
        release=release.name,
        namespace=release.namespace,
        classes=release.classes,
        key_sources=tuple(
            dict.fromkeys([source for home in homes for source in home.key] + [BINDER_REPOSITORY])
        ),
        pullers=release.gate.labelling,
        retention_days=release.read.integer(
            recorder.get("retentionDays"), "recorder.retentionDays"
        ),
        settings_hash=settings_hash,
    )
    release.raise_faults()
    return settings
