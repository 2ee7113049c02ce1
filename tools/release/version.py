"""The version of this checkout, and whether everything says the same.

pyproject.toml is its home. Chart, lab and the pages repeat it; `faults` says which of them differ.

python -m tools.release.version                 print it
python -m tools.release.version --tag v0.2.0    also compare it with a tag and with the change log
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from typing import TYPE_CHECKING, Final

import yaml

from tools.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# How pages name a version of Roost: its images, its tag in git, its chart, its log, README's
# "Version 0.2.0 was tested".
_NAMED: Final = re.compile(
    r"(?:\broost(?:-lab)?(?::|@v|-)|\b(?:rev|tag|targetRevision): v|--version[ =]| version="
    r"|\bVersion )"
    r"(\d+\.\d+\.\d+)\b"
)


def version_of(root: Path = ROOT) -> str:
    """The version in pyproject.toml."""
    return str(
        tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    )


def changes_in(root: Path, version: str) -> str | None:
    """The change log's section of a version; None: it has none."""
    section = re.search(
        rf"^## {re.escape(version)}\b.*?\n(.*?)(?=^## |\Z)",
        (root / "CHANGELOG.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    return section[1].strip() if section else None


def faults(tag: str | None, root: Path = ROOT) -> Iterator[str]:
    """What doesn't say the same version, a sentence each. tag: None checks only the files."""
    version = version_of(root)
    chart = yaml.safe_load((root / "chart" / "Chart.yaml").read_text(encoding="utf-8"))
    for key in ("version", "appVersion"):
        if str(chart[key]) != version:
            yield (
                f"chart/Chart.yaml: {key}: found {chart[key]}, expected {version}, pyproject.toml's"
                " version."
            )
    lab = tomllib.loads((root / "lab" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if lab["version"] != version or f"roost=={version}" not in lab["dependencies"]:
        yield (
            f"lab/pyproject.toml: expected pyproject.toml's version {version}, and the dependency"
            f" roost=={version}."
        )
    pages = (*root.glob("README.md"), *root.glob("docs/**/*.md"), *root.glob("lab/docs/**/*.md"))
    for page in sorted(pages):
        if "decisions" not in page.parts:
            named = {match[1] for match in _NAMED.finditer(page.read_text(encoding="utf-8"))}
            for other in sorted(named - {version}):
                yield f"{page.relative_to(root)}: found version {other}, expected {version}."
    if tag is None:
        return
    if tag != f"v{version}":
        yield f"tag {tag}: expected v{version}, after pyproject.toml's version. Change one of them."
    if changes_in(root, version) is None:
        yield f"CHANGELOG.md: found no section {version}. Name the section Unreleased so."
    if (changes_in(root, "Unreleased") or "").startswith("### "):
        yield f"CHANGELOG.md: Unreleased has entries, expected them below {version}."


def main(argv: list[str] | None = None) -> int:
    """0: all agree; 1: stderr says what doesn't."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.release.version", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--tag", help="the tag of the release, such as v0.2.0")
    tag: str | None = parser.parse_args(argv).tag
    found = list(faults(tag))
    for fault in found:
        print(f"release: {fault}", file=sys.stderr)
    if not found:
        print(version_of())
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
