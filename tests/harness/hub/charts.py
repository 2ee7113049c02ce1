"""Fetch zero-to-jupyterhub and BinderHub at one commit, and build the images that their charts'
pods run.

Owns the pins. ROOST_Z2JH and ROOST_BINDERHUB name another repository than the public one, such as a
clone on this machine; ROOST_Z2JH_REVISION and ROOST_BINDERHUB_REVISION another commit than the
pinned one, or a branch.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from tools.image import ImageError, build_folder

if TYPE_CHECKING:
    from pathlib import Path

Z2JH: Final = "ROOST_Z2JH"
BINDERHUB: Final = "ROOST_BINDERHUB"
# Variable -> the public repository, and the commit that is known to work.
PINS: Final = {
    Z2JH: (
        "https://github.com/jupyterhub/zero-to-jupyterhub-k8s",
        "48ea50e34daddde55d76e30df6ecd47e4abd4d8e",
    ),
    BINDERHUB: (
        "https://github.com/jupyterhub/binderhub",
        "b9fad995d5529e487c25a9f0795f4fe150a96f25",
    ),
}
# Of the Dockerfile; `light` holds the stand-ins.
TARGETS: Final = ("light", "hub", "proxy", "binder")
BASES: Final = {"NODE": ("ca-certificates", "nodejs")}


class ChartError(RuntimeError):
    """The chart can't be had; the message says why, and what to do."""


def fetch(variable: str, folder: Path) -> Path:
    """A checkout of one of PINS, in `folder`. Raises ChartError."""
    address, revision = PINS[variable]
    address, revision = (
        os.environ.get(variable, address),
        os.environ.get(f"{variable}_REVISION", revision),
    )
    folder.mkdir()
    fetched = ["fetch", "--quiet", "--depth=1", address, revision]
    for command in (["init", "--quiet"], fetched, ["checkout", "--quiet", "FETCH_HEAD"]):
        done = subprocess.run(
            ["git", "-C", folder, *command], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ChartError(
                f"no chart of {address} at {revision}: git {command[0]} said"
                f" {done.stderr.strip()!r}. Without the internet, set {variable} to a clone of it"
                " on this machine."
            )
    return folder


def build_images(
    z2jh: Path, binderhub: Path, source: Path, proxy: Path, scratch: Path
) -> dict[str, Path]:
    """The archives of TARGETS.

    z2jh, binderhub: checkouts, whose pins the images get. source: a folder with the Dockerfile and
    the stand-ins. proxy: where npm installed configurable-http-proxy. Raises ImageError.
    """
    context = scratch / "images"
    context.mkdir()
    for name in ("Dockerfile", "light_server.py"):
        shutil.copy(source / name, context)
    shutil.copy(z2jh / "images/hub/requirements.txt", context / "hub.txt")
    shutil.copy(binderhub / "helm-chart/images/binderhub/requirements.txt", context / "binder.txt")
    shutil.copytree(source / "stand_ins", context / "stand_ins")
    shutil.copytree(binderhub / "binderhub", context / "binderhub")
    shutil.copytree(proxy, context / "proxy", symlinks=True)
    return build_folder(context, TARGETS, BASES)


def chart_of_binderhub(binderhub: Path, z2jh: Path) -> Path:
    """BinderHub's chart in its checkout, made to depend on the other checkout's chart, whatever
    version that has.
    """
    chart = binderhub / "helm-chart/binderhub"
    hub = chart / "charts/jupyterhub"
    shutil.copytree(z2jh / "jupyterhub", hub)
    wanted = re.search(
        r'name: jupyterhub\s+version: "?([^"\s]+)', (chart / "Chart.yaml").read_text()
    )
    if wanted is None:
        raise ChartError(f"{chart / 'Chart.yaml'}: found no version of the dependency jupyterhub")
    described = hub / "Chart.yaml"
    described.write_text(
        re.sub(r"(?m)^version: .*", f"version: {wanted[1]}", described.read_text())
    )
    return chart


def build_awaiter(z2jh: Path, scratch: Path) -> Path:
    """zero-to-jupyterhub's program that holds an upgrade up until images are there.

    Raises ImageError.
    """
    program = scratch / "image-awaiter"
    command = ["go", "build", "-o", str(program), "."]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    source = z2jh / "images/image-awaiter"
    done = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ImageError(f"{' '.join(command)} in {source}: {done.stderr.strip()}")
    return program
