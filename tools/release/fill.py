"""Copy this checkout's tracked files, and fill in where Roost is published: what image, chart and
wheel are made of.

An address that isn't known changes nothing: then the copy is the checkout.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import yaml

from tools.image import LAB, ROOST
from tools.release.addresses import Addresses, parse_target
from tools.release.checkout import BuildError, copy
from tools.release.version import changes_in, version_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What the wheels hold besides chart and templates.
ROOMS: Final = ("generator", "roost", "roost_core", "webhook", "lab/roost_lab")
_PAGE: Final = re.compile(r"\b(lab/)?docs/([\w/-]+)\.md(#[\w-]+)?")
# Keep a Changelog's headings -> Artifact Hub's kinds of changes.
KINDS: Final = {
    "Added": "added",
    "Changed": "changed",
    "Deprecated": "deprecated",
    "Removed": "removed",
    "Fixed": "fixed",
    "Security": "security",
}


def write_source(folder: Path, addresses: Addresses) -> list[str]:
    """Replace `folder` by the checkout with the addresses filled in: a line for each change.

    Raises BuildError.
    """
    copy(folder)
    changes = fill(folder, addresses)
    # Pages that repeat values.yaml.
    for writer in ("write_values_reference", "write_chart_pages") if changes else ():
        command = [sys.executable, "-m", f"tools.{writer}"]
        environment = {**os.environ, "PYTHONPATH": str(folder.resolve())}
        subprocess.run(command, cwd=folder, check=True, env=environment, stdout=sys.stderr)
    return changes


def fill(root: Path, addresses: Addresses) -> list[str]:
    """Write the addresses into the copy `root`: a line for each change. Raises BuildError."""
    changes = []
    if addresses.registry:
        target = parse_target(addresses.registry)
        head = re.compile(r"(^image:\n)(?:  #.*\n)+  name: roost$", re.MULTILINE)
        comment = (
            "  # As released; name your own copy for a cluster that can't reach this registry."
        )
        _edit(
            root / "chart" / "values.yaml",
            head,
            rf"\g<1>{comment}\n  name: {target.address(ROOST)}",
        )
        changes.append(f"image.name: {target.address(ROOST)}")
        of_lab = re.compile(r"(?<=^  image: {name: )roost-lab\b", re.MULTILINE)
        _edit(root / "chart" / "values.yaml", of_lab, target.address(LAB))
        changes.append(f"recorder.image.name: {target.address(LAB)}")
    if addresses.documentation:
        runbooks = f"{addresses.documentation}/alerts.html"
        _edit(
            root / "chart" / "values.yaml",
            re.compile(r"runbooks: docs/alerts\.md\b"),
            f"runbooks: {runbooks}",
        )
        changes.append(f"monitoring.prometheusRule.runbooks: {runbooks}")
        changes.append(f"pages that messages name: {_link_pages(root, addresses.documentation)}")
    chart = root / "chart" / "Chart.yaml"
    text = chart.read_text(encoding="utf-8")
    chart.write_text("".join((text, *_chart_lines(root))), encoding="utf-8")
    if addresses.repository:
        home = addresses.documentation or addresses.repository
        top = f"home: {home}\nsources: [{addresses.repository}]\n"
        _edit(chart, re.compile(r"^maintainers:$", re.MULTILINE), f"{top}\\g<0>")
        changes.append(f"home: {home}, sources: {addresses.repository}")
    urls = {"Source": addresses.repository, "Documentation": addresses.documentation}
    entries = "".join(f'{name} = "{url}"\n' for name, url in urls.items() if url)
    if entries:
        scripts = re.compile(r"^\[project\.scripts\]$", re.MULTILINE)
        _edit(root / "pyproject.toml", scripts, f"[project.urls]\n{entries}\n\\g<0>")
        extras = re.compile(r"^\[project\.optional-dependencies\]$", re.MULTILINE)
        _edit(root / "lab" / "pyproject.toml", extras, f"[project.urls]\n{entries}\n\\g<0>")
        changes.append("project.urls: " + entries.strip().replace("\n", ", "))
    return changes


def _link_pages(root: Path, documentation: str) -> int:
    """Name pages by address where a program or the chart tells of them: who installs these has no
    docs/. How many.
    """
    count = 0
    files = [root / "chart" / "templates" / "NOTES.txt"]
    files += (path for room in ROOMS for path in sorted((root / room).rglob("*.py")))
    for path in files:
        text = path.read_text(encoding="utf-8")
        linked, found = _PAGE.subn(rf"{documentation}/\1\2.html\3", text)
        if found:
            path.write_text(linked, encoding="utf-8")
        count += found
    return count


def changes_of(section: str) -> list[tuple[str, str]]:
    """(Artifact Hub's kind, description) for each entry of a change log's section."""
    found = []
    for part in re.split(r"^### ", section, flags=re.MULTILINE)[1:]:
        heading, _, entries = part.partition("\n")
        for entry in re.split(r"^- ", entries, flags=re.MULTILINE)[1:]:
            words = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(entry.split()))
            found.append((KINDS.get(heading.strip(), "changed"), words))
    return found


def _chart_lines(root: Path) -> Iterator[str]:
    """Lines of Chart.yaml's annotations, which are its last part."""
    changes = changes_of(changes_in(root, version_of(root)) or "")
    if changes:
        listed = yaml.safe_dump(
            [{"kind": kind, "description": text} for kind, text in changes], allow_unicode=True
        )
        yield "  artifacthub.io/changes: |\n" + "".join(
            f"    {line}\n" for line in listed.splitlines()
        )


def _edit(path: Path, pattern: re.Pattern[str], new: str) -> None:
    text, count = pattern.subn(new, path.read_text(encoding="utf-8"))
    if count != 1:
        raise BuildError(
            f"{path}: found {count} places like {pattern.pattern!r}, expected 1. Mend"
            " tools/release/fill.py."
        )
    path.write_text(text, encoding="utf-8")
