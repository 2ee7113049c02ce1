"""Read release.json, which the chart renders for `roost controllers`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from roost.controllers.contract.planner import Planner
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.registry import CONTROLLERS
from roost_core.release.reader import (
    Document,
    Reader,
    SettingsError,
    SettingsFault,
    describe,
    load_document,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllersSettings:
    """All settings of the program."""

    # What several controllers use.
    shared: ReleaseDocument
    # A planner for each controller that has something to do. It holds that controller's settings.
    planners: tuple[Planner[Any], ...]


def load_settings(
    path: Path, scheduler_configuration_path: Path | None, minor: int
) -> ControllersSettings:
    """Read release.json, and the configuration of Roost's kube-scheduler where it has one.

    minor: of the cluster's Kubernetes version: 36 for 1.36. Raises SettingsError with all faults;
    each names its file.
    """
    document, _ = load_document(str(path), path.read_bytes)
    configuration = (
        None if scheduler_configuration_path is None else _load_yaml(scheduler_configuration_path)
    )
    return parse_settings(document, configuration, minor)


def parse_settings(
    document: Document, scheduler_configuration: Document | None, minor: int
) -> ControllersSettings:
    """Check release.json and make the planners. Raises SettingsError with all faults.

    scheduler_configuration: as parsed from YAML; None: Roost has no kube-scheduler. minor: as for
    `load_settings`.
    """
    read = Reader()
    shared = ReleaseDocument(read, document, scheduler_configuration, minor)
    planners = [controller.planner(shared) for controller in CONTROLLERS]
    # Faults in parts that no controller reads are reported, too.
    shared.read_all()
    shared.raise_faults()
    with_work = tuple(planner for planner in planners if planner is not None)
    return ControllersSettings(shared=shared, planners=with_work)


def _load_yaml(path: Path) -> dict[str, Any]:
    try:
        document = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
    except OSError as error:
        found = f"no readable file ({error.strerror})"
    except (ValueError, yaml.YAMLError) as error:
        found = f"invalid YAML ({type(error).__name__})"
    else:
        if isinstance(document, dict):
            return document
        found = describe(document)
    raise SettingsError([SettingsFault(str(path), found, "a YAML object")])
