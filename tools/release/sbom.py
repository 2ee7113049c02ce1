"""List what an image holds, as SPDX: Debian's packages, Python's, and programs of ours.

Read from the image's own layers, so the list is of what is in it. The release's workflow uses syft,
which also reads what is compiled into programs.
Source: SPDX 2.3; Python's core metadata; dpkg's status file.
"""

from __future__ import annotations

import json
import re
from email.parser import BytesHeaderParser
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from tools.release.oci import Archive, layer_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_METADATA: Final = re.compile(r".*\.dist-info/METADATA")
_DPKG_STATUS: Final = "var/lib/dpkg/status"


class Package(NamedTuple):
    """kind: as in a package URL, deb or pypi. license: as the package says, "" if it says none."""

    kind: str
    name: str
    version: str
    license: str


def packages_of(path: Path) -> list[Package]:
    """The packages of every platform of an image's archive, sorted, each once.

    Each file counts in its last layer: what a later layer replaces is gone.
    """
    files: dict[str, list[Package]] = {}
    with Archive(path) as archive:
        for manifest in archive.manifests():
            for layer in archive.parts(manifest)[1:]:
                for name, contents in layer_files(archive, layer):
                    if name == _DPKG_STATUS:
                        files[f"{manifest.digest} {name}"] = list(_debian(contents.read()))
                    elif _METADATA.fullmatch(name):
                        files[f"{manifest.digest} {name}"] = [_python(contents.read())]
    return sorted({package for found in files.values() for package in found})


def spdx_of(name: str, version: str, digest: str, packages: list[Package]) -> str:
    """The SPDX document of an image, as JSON; the same for the same image.

    digest: sha256:… of the image's manifest.
    """
    root = "SPDXRef-image"
    listed = [
        {
            "SPDXID": root,
            "name": name,
            "versionInfo": version,
            "downloadLocation": "NOASSERTION",
            "licenseDeclared": "BSD-3-Clause",
            "checksums": [{"algorithm": "SHA256", "checksumValue": digest.partition(":")[2]}],
            "primaryPackagePurpose": "CONTAINER",
        }
    ]
    for number, package in enumerate(packages):
        listed.append(
            {
                "SPDXID": f"SPDXRef-package-{number}",
                "name": package.name,
                "versionInfo": package.version,
                "downloadLocation": "NOASSERTION",
                "licenseDeclared": package.license or "NOASSERTION",
                "externalRefs": [
                    {
                        "referenceCategory": "PACKAGE-MANAGER",
                        "referenceType": "purl",
                        "referenceLocator": _purl(package),
                    }
                ],
            }
        )
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name} {version}",
        "documentNamespace": f"urn:oci:{name}@{digest}",
        # No moment of its own: a second list of the same image is the same.
        "creationInfo": {"created": "2020-02-02T00:00:00Z", "creators": ["Tool: roost-release"]},
        "packages": listed,
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": root,
            },
            *(
                {
                    "spdxElementId": root,
                    "relationshipType": "CONTAINS",
                    "relatedSpdxElement": package["SPDXID"],
                }
                for package in listed[1:]
            ),
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _debian(status: bytes) -> Iterator[Package]:
    for paragraph in status.split(b"\n\n"):
        fields = BytesHeaderParser().parsebytes(paragraph)
        if fields["Package"] and str(fields["Status"]).endswith(" installed"):
            yield Package("deb", fields["Package"], fields["Version"], "")


def _python(metadata: bytes) -> Package:
    fields = BytesHeaderParser().parsebytes(metadata)
    # Only an expression is SPDX's; the older field is anybody's words.
    name = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
    return Package("pypi", name, fields["Version"], fields["License-Expression"] or "")


def _purl(package: Package) -> str:
    group = "debian/" if package.kind == "deb" else ""
    return f"pkg:{package.kind}/{group}{package.name}@{quote(package.version, safe='')}"
