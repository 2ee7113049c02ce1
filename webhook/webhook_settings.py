"""Read the parts of release.json that the webhook needs."""

from __future__ import annotations

from roost_core.release.reader import Document, Reader, load_document
from roost_core.release.release_settings import ReleaseSettings


def watched_parts(settings: ReleaseSettings) -> tuple[object, ...]:
    """The settings that decide which objects are watched."""
    return (
        settings.name,
        settings.namespace,
        settings.classes,
        settings.reads_nodes,
        settings.sets_scheduler,
        settings.leases,
        settings.scheduler_host,
        settings.shared_namespaces,
    )


def rule_parts(settings: ReleaseSettings) -> tuple[object, ...]:
    """All settings that rules read. Documents with equal parts place pods in the same way."""
    return (
        *watched_parts(settings),
        settings.packing_profiles,
        settings.replace_schedulers,
        settings.gate.mode,
        settings.gate.managed_images,
        settings.pullers_run,
        settings.placeholder_names,
    )


def parse_settings(document: Document, revision: str = "") -> ReleaseSettings:
    """The settings of a document. Raises SettingsError with all faults."""
    settings = ReleaseSettings(Reader(), document, revision)
    # A setting is read, and its faults noted, when it is first asked for.
    rule_parts(settings)
    settings.raise_faults()
    return settings


def read_settings(text: bytes) -> ReleaseSettings:
    """The settings of release.json. Raises SettingsError with all faults."""
    document, revision = load_document("the document", lambda: text)
    return parse_settings(document, revision)
