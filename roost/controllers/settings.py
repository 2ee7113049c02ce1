"""Read release.json, which the chart renders for `roost controllers`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.registry import CONTROLLERS
from roost_core.placement.settings_reader import DNS_NAME, Document, Reader, SettingsError, load_object

if TYPE_CHECKING:
    from pathlib import Path

    from roost.controllers.contract.planner import Planner

VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllersSettings:
    """Settings of the program as a whole; each planner has its controller's own."""

    # Read once, for all controllers.
    shared: ReleaseDocument
    evictions_per_minute: int
    planners: tuple[Planner[Any], ...]


def load_settings(path: Path, scheduler_configuration_path: Path | None, minor: int) -> ControllersSettings:
    """Read both files; minor: the cluster's, 36 for 1.36. Raises SettingsError with all faults; each names its file."""
    document, _ = load_object(str(path), path.read_bytes)
    configuration = None
    if scheduler_configuration_path is not None:
        name, read = str(scheduler_configuration_path), scheduler_configuration_path.read_bytes
        configuration, _ = load_object(name, read, _load_yaml, "YAML", yaml.YAMLError)
    return parse_settings(document, configuration, minor)


def parse_settings(document: Document, scheduler_configuration: Document | None, minor: int) -> ControllersSettings:
    """Check the document and make the planners. Raises SettingsError with all faults."""
    read = Reader()
    if document.get("version") != VERSION:
        read.fault("version", document.get("version"), str(VERSION))
    read.name(document.get("release"), "release", DNS_NAME, "a release's name")
    read.name(document.get("namespace"), "namespace", DNS_NAME, "a namespace's name")
    mover = read.mapping(document.get("placeholderMover"), "placeholderMover")
    evictions = read.whole(mover.get("evictionsPerMinute"), "placeholderMover.evictionsPerMinute", 0, 10_000)
    shared = ReleaseDocument(read, document, scheduler_configuration, minor)
    planners = tuple(planner for each in CONTROLLERS if (planner := each.planner(shared)) is not None)
    settings = ControllersSettings(shared=shared, evictions_per_minute=evictions, planners=planners)
    # Of parts that no controller needed.
    _ = shared.classes, shared.sets, shared.pullers, shared.events
    if read.faults:
        raise SettingsError(read.faults)
    return settings


def _load_yaml(text: bytes) -> Any:  # noqa: ANN401 - a document can be anything
    return yaml.load(text, Loader=yaml.CSafeLoader)
