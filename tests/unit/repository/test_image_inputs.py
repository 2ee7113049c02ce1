"""What the build of Roost's image takes from the checkout and from the machine's pip."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from tools import image

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_the_build_context_holds_what_the_wheel_and_the_dockerfile_name() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    context = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert all((ROOT / name).exists() for name in context)
    wheels = {
        f"{folder}{name}"
        for folder in ("", "lab/")
        for name in tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
            "wheel"
        ]["only-include"]
    }
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    named = {name for names in copied for name in names.split()} - {".", "lab"}
    assert wheels | named <= context


def test_the_builds_pip_has_the_machines_settings_and_the_files_that_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels, authority = tmp_path / "wheels", tmp_path / "ca.crt"
    wheels.mkdir()
    authority.touch()
    (tmp_path / "machine.conf").write_text(f"[global]\ntimeout = 5\nfind-links = {wheels}\n[install]\ncert = /gone\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "machine.conf"))
    monkeypatch.setenv("PIP_CERT", str(authority))
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    files = image.pip_files(tmp_path)
    settings = configparser.RawConfigParser()
    settings.read(next(source for source, target in files.items() if target == Path("/etc/pip.conf")))
    assert settings["global"]["timeout"] == "5"
    assert settings["global"]["cert"] == str(authority)  # the environment decides
    assert files[wheels] == wheels
    assert files[authority] == authority
    assert Path("/gone") not in files
