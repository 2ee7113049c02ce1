"""What the build of Roost's image takes from the checkout and from the machine's pip."""

import re
import tomllib
from pathlib import Path

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
