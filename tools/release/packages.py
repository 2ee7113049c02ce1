"""Package the chart as Helm does, and as the artifact that registries hold; and the kubectl plugin
for krew.

Owns the packages' bytes: two packages of the same files are the same. Helm's own hold the moment of
packing.
Source: Helm's chart format, its media types for registries, and krew's manifest.
"""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING, Final

import yaml

from tools.release.oci import write_artifact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

CONFIG_TYPE: Final = "application/vnd.cncf.helm.config.v1+json"
PLUGIN: Final = "kubectl-roost.tar.gz"
CONTENT_TYPE: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def package_chart(chart: Path, tgz: Path, archive: Path, epoch_seconds: int) -> None:
    """Write a chart's folder as a package (what `helm install` takes as a file) and as an OCI
    archive.
    """
    about = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    named = (
        (f"{about['name']}/{file.relative_to(chart).as_posix()}", file)
        for file in _chart_files(chart)
    )
    packed = _pack(named, epoch_seconds)
    tgz.write_bytes(packed)
    annotations = {
        "org.opencontainers.image.title": about["name"],
        "org.opencontainers.image.version": str(about["version"]),
        "org.opencontainers.image.description": about["description"],
    }
    if sources := about.get("sources"):
        # GitHub's registry finds by it whose package this is.
        annotations["org.opencontainers.image.source"] = sources[0]
    config = json.dumps(about, sort_keys=True).encode()
    write_artifact(archive, (CONFIG_TYPE, config), [(CONTENT_TYPE, packed)], annotations)


def package_plugin(
    root: Path, folder: Path, version: str, repository: str, epoch_seconds: int
) -> None:
    """Write the kubectl plugin's archive, and krew's manifest that names it by the address that it
    has in the forge's release.
    """
    files = [("kubectl-roost", root / "tools/krew/kubectl-roost"), ("LICENSE", root / "LICENSE")]
    packed = _pack(files, epoch_seconds)
    (folder / PLUGIN).write_bytes(packed)
    manifest = (root / "tools/krew/roost.yaml").read_text(encoding="utf-8").partition("\n")[2]
    filled = {
        "VERSION": version,
        "URI": f"{repository}/releases/download/v{version}/{PLUGIN}",
        "SHA256": hashlib.sha256(packed).hexdigest(),
    }
    for word, value in filled.items():
        manifest = manifest.replace(word, value)
    (folder / "roost.yaml").write_text(manifest, encoding="utf-8")


def _pack(files: Iterable[tuple[str, Path]], epoch_seconds: int) -> bytes:
    """A compressed tar of files under their names in it."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for name, file in files:
            member = tarfile.TarInfo(name)
            member.size = file.stat().st_size
            member.mtime = epoch_seconds
            member.mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
            with file.open("rb") as contents:
                tar.addfile(member, contents)
    return packed.getvalue()


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
