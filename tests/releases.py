"""A small release of this checkout: its archives hold nothing that runs."""

import dataclasses
import json
from pathlib import Path
from typing import Final

from tests.harness.images import make_image, write_archive
from tools.release.addresses import REPOSITORIES
from tools.release.build import RECORD, Part, Record
from tools.release.checkout import checkout_state
from tools.release.oci import Archive
from tools.release.version import version_of

# What Roost's wheel and image hold.
PACKAGES: Final = ("roost", "roost_core", "generator", "webhook")


def small_release(folder: Path) -> Record:
    """Make the folder, as `make release` leaves it to `tools/publish`."""
    folder.mkdir()
    parts = {}
    for name in REPOSITORIES:
        path = folder / f"{name}.tar"
        write_archive(make_image(size_bytes=1000), name, path)
        with Archive(path) as archive:
            parts[name] = Part(path.name, archive.root.digest)
    record = Record(version_of(), *checkout_state(), parts)
    write_record(folder, record)
    return record


def write_record(folder: Path, record: Record) -> None:
    """Write what the folder says of itself."""
    (folder / RECORD).write_text(json.dumps(dataclasses.asdict(record)))
