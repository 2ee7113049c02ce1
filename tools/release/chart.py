"""Package the chart as Helm does, and as the artifact that registries hold.

Owns the package's bytes: two packages of the same chart are the same. Helm's own hold the moment of
packing.
Source: Helm's chart format, and its media types for registries.
"""

from __future__ import annotations

import fnmatch
import gzip
import io
import json
import tarfile
from typing import TYPE_CHECKING, Final

import yaml

from tools.release.oci import write_artifact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG_TYPE: Final = "application/vnd.cncf.helm.config.v1+json"
CONTENT_TYPE: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def package_chart(chart: Path, tgz: Path, archive: Path, epoch_seconds: int) -> None:
    """Write a chart's folder as a package (what `helm install` takes as a file) and as an OCI
    archive.
    """
    about = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for file in _chart_files(chart):
            name = file.relative_to(chart).as_posix()
            member = tarfile.TarInfo(f"{about['name']}/{name}")
            member.size = file.stat().st_size
            member.mtime = epoch_seconds
            with file.open("rb") as contents:
                tar.addfile(member, contents)
    tgz.write_bytes(packed.getvalue())
    annotations = {
        "org.opencontainers.image.title": about["name"],
        "org.opencontainers.image.version": str(about["version"]),
        "org.opencontainers.image.description": about["description"],
    }
    config = json.dumps(about, sort_keys=True).encode()
    write_artifact(archive, (CONFIG_TYPE, config), [(CONTENT_TYPE, packed.getvalue())], annotations)


def _chart_files(chart: Path) -> Iterator[Path]:
    """The chart's files, Chart.yaml first as Helm has it, without those that .helmignore names."""
    lines = (chart / ".helmignore").read_text(encoding="utf-8").splitlines()
    ignored = [line.rstrip("/") for line in lines if line and not line.startswith("#")]
    yield chart / "Chart.yaml"
    for path in sorted(chart.rglob("*")):
        parts = path.relative_to(chart).parts
        if not path.is_file() or parts == ("Chart.yaml",):
            continue
        if not any(fnmatch.fnmatch(part, pattern) for part in parts for pattern in ignored):
            yield path
