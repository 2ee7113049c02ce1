"""List what an image holds, as SPDX: Debian's packages, Python and its packages, and what Go's
programs are compiled of.

Read from the image's own layers, so the list is of what is in it.
Source: SPDX 2.3; Python's core metadata; dpkg's status file; Go's debug/buildinfo.
"""

from __future__ import annotations

import json
import re
from email.parser import BytesHeaderParser
from typing import IO, TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from tools.release.oci import Archive, layer_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_METADATA: Final = re.compile(r".*\.dist-info/METADATA")
_DPKG_STATUS: Final = "var/lib/dpkg/status"
_OS_RELEASE: Final = "usr/lib/os-release"
_ELF: Final = b"\x7fELF"
# Go's linker writes this, flags (2: since Go 1.18), the version of Go, and the list of modules.
_GO_HEAD: Final = re.compile(rb"\xff Go buildinf:.[\x02\x03].{16}", re.DOTALL)
# The list is wrapped in as many bytes on each side.
_GO_WRAP: Final = 16
_LONGEST_VARINT: Final = 5


class Package(NamedTuple):
    """kind: as in a package URL: deb, pypi, golang or generic. license: as the package says, "" if
    it says none. distribution: as debian-13, of Debian's packages alone.
    """

    kind: str
    name: str
    version: str
    license: str
    distribution: str = ""


def packages_of(path: Path) -> list[Package]:
    """The packages of every platform of an image's archive, sorted, each once.

    Each file counts in its last layer: what a later layer replaces is gone.
    """
    files: dict[str, list[Package]] = {}
    distribution = ""
    with Archive(path) as archive:
        for manifest in archive.images():
            config, *layers = archive.parts(manifest)
            files[manifest.digest] = list(_interpreter(archive.read(config)))
            for layer in layers:
                for name, contents in layer_files(archive, layer):
                    if name == _OS_RELEASE:
                        fields = dict(
                            re.findall(r'(?m)^(\w+)="?([^"\n]*)', contents.read().decode())
                        )
                        distribution = f"{fields.get('ID')}-{fields.get('VERSION_ID')}"
                    else:
                        files[f"{manifest.digest} {name}"] = list(_of_file(name, contents))
    found = {package for packages in files.values() for package in packages}
    return sorted(
        package._replace(distribution=distribution) if package.kind == "deb" else package
        for package in found
    )


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


def _of_file(name: str, contents: IO[bytes]) -> Iterator[Package]:
    if name == _DPKG_STATUS:
        yield from _debian(contents.read())
    elif _METADATA.fullmatch(name):
        yield _python(contents.read())
    elif contents.read(len(_ELF)) == _ELF:
        yield from _go(contents.read())


def _interpreter(config: bytes) -> Iterator[Package]:
    """Python's own images build it from source, and say which in their environment."""
    for variable in json.loads(config).get("config", {}).get("Env") or ():
        name, _, version = variable.partition("=")
        if name == "PYTHON_VERSION":
            yield Package("generic", "python", version, "PSF-2.0")


def _go(program: bytes) -> Iterator[Package]:
    """Go's library and the modules of a program; nothing of what another compiler made."""
    head = _GO_HEAD.search(program)
    if head is None:
        return
    version, end = _go_string(program, head.end())
    modules, _ = _go_string(program, end)
    if not re.fullmatch(rb"go\d[\w.-]*", version):
        return
    yield Package("golang", "stdlib", version.decode().removeprefix("go"), "BSD-3-Clause")
    held: list[Package] = []
    for line in modules[_GO_WRAP:-_GO_WRAP].decode(errors="replace").splitlines():
        kind, *fields = line.split("\t")
        if kind in ("dep", "=>") and len(fields) >= 2:
            # An arrow's line follows that of the module which it replaces.
            held[len(held) - (kind == "=>") :] = [Package("golang", fields[0], fields[1], "")]
    yield from held


def _go_string(program: bytes, at: int) -> tuple[bytes, int]:
    """The string whose length, a varint, stands at a place, and where it ends."""
    length = 0
    for number, byte in enumerate(program[at : at + _LONGEST_VARINT]):
        length |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:
            start = at + number + 1
            return program[start : start + length], start + length
    return b"", at


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
    where = f"?distro={package.distribution}" if package.distribution else ""
    return f"pkg:{package.kind}/{group}{package.name}@{quote(package.version, safe='')}{where}"
