"""Unpack the Debian packages that a Python needs into a folder: no package manager, no shell, no installer scripts.

Owns which packages these are, where they come from (the machine's own APT sources, checked by APT) and their cache.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from tools.oci.errors import ImageError, run

# base-files says which Debian this is, for people and scanners; wheels with C++ ask for the other.
ROOTS = ("base-files", "libstdc++6")
# Only their installer scripts, or modules of the standard library that Roost has no use for, ask for these.
LEFT_OUT = frozenset(
    {
        "debconf",
        "dpkg",
        "install-info",
        "libdb5.3",
        "libdb5.3t64",
        "libnsl2",
        "libtirpc3",
        "libtirpc3t64",
        "media-types",
        "mailcap",
    }
)
# Modules that need what is left out, hooks of Debian's own, and pages for people.
DROPPED = (
    "etc/python3*",
    "usr/lib/python3*/sitecustomize.py",
    "usr/lib/python3*/lib-dynload/_dbm.*",
    "usr/lib/python3*/lib-dynload/nis.*",
    "usr/lib/python3*/lib2to3",
    "usr/lib/python3*/pydoc_data",
    "usr/share/bug",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/info",
    "usr/share/doc/*/[!c]*",
    "usr/share/doc/*/changelog*",
)
MERGED = ("bin", "lib", "lib64", "sbin")  # links into usr/, as every Debian has them since 12
USER_ID = 65532
LISTS_SECONDS = 3600.0  # lists of packages are asked for anew after so long
SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))


@dataclass(frozen=True, slots=True)
class Package:
    """One .deb as APT offers it."""

    name: str
    file_name: str
    address: str
    sha256: str


class Archive:
    """Debian's packages, by an APT that has its own lists and knows nothing of what is installed here."""

    def __init__(self, folder: Path, sources: Path) -> None:
        self._folder = folder
        self.debs = folder / "debs"
        for name in ("state/lists/partial", "cache/archives/partial", "sources.d", "debs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "state/status").touch()
        shutil.rmtree(folder / "sources.d")
        (folder / "sources.d").mkdir()
        suffix = sources.suffix if sources.suffix == ".sources" else ".list"
        shutil.copyfile(sources, folder / "sources.d" / f"debian{suffix}")
        self._options = [
            f"-oDir::State={folder / 'state'}",
            f"-oDir::State::status={folder / 'state/status'}",
            f"-oDir::Cache={folder / 'cache'}",
            "-oDir::Etc::SourceList=/dev/null",
            f"-oDir::Etc::SourceParts={folder / 'sources.d'}",
            "-oAPT::Sandbox::User=",  # its own user couldn't write here
        ]

    def update(self) -> None:
        """Fetch the lists of packages, unless they have just been fetched from the same sources."""
        stamp = self._folder / "updated"
        sources = "".join(path.read_text() for path in (self._folder / "sources.d").iterdir())
        if stamp.exists() and stamp.read_text() == sources and time.time() - stamp.stat().st_mtime < LISTS_SECONDS:
            return
        run(["apt-get", *self._options, "-qq", "update"])
        stamp.write_text(sources)

    def python(self) -> str:
        """The package of Debian's Python 3, such as python3.11."""
        told = run(["apt-cache", *self._options, "show", "--no-all-versions", "python3-minimal"])
        found = re.search(r"Depends: (python3\.\d+)-minimal", told)
        if found is None:
            raise ImageError(f"APT knows no python3-minimal in {self._folder / 'sources.d'}. Name Debian's sources.")
        return found[1]

    def closure(self, names: tuple[str, ...]) -> list[Package]:
        """These packages and all they depend on, sorted by name, without those of LEFT_OUT."""
        flags = ["suggests", "recommends", "conflicts", "breaks", "replaces", "enhances"]
        asked = ["depends", "--recurse", *(f"--no-{flag}" for flag in flags), *names]
        needs = read_dependencies(run(["apt-cache", *self._options, *asked]))
        wanted, waiting = set(names), deque(names)
        while waiting:
            for name in needs.get(waiting.popleft(), ()):
                if name not in wanted | LEFT_OUT:
                    wanted.add(name)
                    waiting.append(name)
        # In a folder without packages: it doesn't name what lies there already.
        asked = ["apt-get", *self._options, "download", "--print-uris", *sorted(wanted)]
        printed = run(asked, folder=self._folder / "state")
        found = re.findall(r"^'([^']+)' (\S+) \d+ SHA256:([0-9a-f]{64})", printed, re.MULTILINE)
        packages = [Package(name.partition("_")[0], name, address, digest) for address, name, digest in found]
        missing = wanted - {package.name for package in packages}
        if missing:
            raise ImageError(f"APT offers no {', '.join(sorted(missing))}.")
        return sorted(packages, key=lambda package: package.name)

    def fetch(self, packages: list[Package]) -> list[Path]:
        """The .deb files, fetched where they aren't in the cache yet."""
        missing = [package.name for package in packages if not self._is_whole(package)]
        if missing:
            run(["apt-get", *self._options, "-qq", "download", *missing], folder=self.debs)
        broken = [package.file_name for package in packages if not self._is_whole(package)]
        if broken:
            raise ImageError(f"{self.debs}: {', '.join(broken)} are not what APT's lists say. Run this again.")
        return [self.debs / package.file_name for package in packages]

    def _is_whole(self, package: Package) -> bool:
        path = self.debs / package.file_name
        return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == package.sha256


def find_sources() -> Path:
    """The machine's own APT sources of Debian."""
    for path in SOURCES:
        if path.exists():
            return path
    raise ImageError(
        f"found none of {', '.join(map(str, SOURCES))}. Name a file of Debian's APT sources: --apt-sources"
    )


def read_dependencies(printed: str) -> dict[str, list[str]]:
    """What `apt-cache depends --recurse` prints, as {package: packages it needs}; of alternatives the first."""
    needs: dict[str, list[str]] = {}
    name, alternative_of_taken = "", False
    for line in printed.splitlines():
        kind, colon, needed = line.partition("Depends: ")  # also PreDepends
        if line and not line[0].isspace():
            name = line.strip()
            needs.setdefault(name, [])
        elif colon:
            # `|` stands before each alternative but the last. `<…>` is a name that others provide.
            if not alternative_of_taken and not needed.startswith("<"):
                needs[name].append(needed.partition(":")[0])
            alternative_of_taken = kind.strip().startswith("|")
    return needs


def unpack(debs: list[Path], root: Path) -> None:
    """Make a root folder of the packages, with the accounts and records that their installer scripts would make."""
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    records = root / "var/lib/dpkg/status.d"
    records.mkdir(parents=True)
    for deb in debs:
        with tempfile.TemporaryFile() as content:
            subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], stdout=content, check=True)
            content.seek(0)
            # The packages still say /lib where they mean /usr/lib.
            tar: list[str | Path] = [
                "tar",
                "--extract",
                "--no-same-owner",
                "--keep-directory-symlink",
                "--directory",
                root,
            ]
            subprocess.run(tar, stdin=content, check=True)
        # Where scanners look for packages in images without dpkg.
        fields = run(["dpkg-deb", "--field", deb])
        (records / deb.name.partition("_")[0]).write_text(fields)
    for pattern in DROPPED:
        for path in root.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    (root / "etc/passwd").write_text(
        f"root:x:0:0:root:/root:/usr/sbin/nologin\nroost:x:{USER_ID}:{USER_ID}:roost:/tmp:/usr/sbin/nologin\n"
    )
    (root / "etc/group").write_text(f"root:x:0:\nroost:x:{USER_ID}:\n")
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    (root / "tmp").mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
