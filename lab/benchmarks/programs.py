"""Build the Go programs that Roost is measured with and against, and keep them in the per-user
cache.

Owns `lab/benchmarks/go/`. A program is built again when any source of the module changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.figures import say
from tests.harness.binaries import cache_root, find_go

MODULE: Final = Path(__file__).resolve().parent / "go"


class BuildError(RuntimeError):
    """A benchmark's Go program did not build; the message ends with what Go said."""


def program(name: str) -> Path:
    """Path of `webhook` (the peer) or `createpods`, built when missing (half a minute, once).

    Raises HarnessUnavailableError where Go is missing, BuildError when the build fails.
    """
    target = cache_root() / "bin" / f"benchmark-{name}-{_hash_of_sources()}"
    if target.exists():
        return target
    go = find_go()
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / ".lock-benchmarks").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _build(go, name, target)
    return target


def _build(go: Path, name: str, target: Path) -> None:
    say(f"{name}: building from {MODULE}")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".building-") as scratch:
        output = Path(scratch) / name
        command = [
            str(go),
            "build",
            "-trimpath",
            "-buildvcs=false",
            "-mod=readonly",
            "-ldflags=-s -w",
        ]
        # GOFLAGS and GOWORK of a developer's own projects would change what is built.
        environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
        done = subprocess.run(
            [*command, "-o", str(output), f"./cmd/{name}"],
            cwd=MODULE,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise BuildError(f"{name} did not build in {MODULE}:\n{done.stderr[-4000:]}")
        output.rename(target)
    say(f"{name}: built in {time.monotonic() - started:.0f} s")


def _hash_of_sources() -> str:
    digest = hashlib.sha256()
    for source in sorted(
        path for path in MODULE.rglob("*") if path.suffix in (".go", ".mod", ".sum")
    ):
        digest.update(
            source.relative_to(MODULE).as_posix().encode() + b"\0" + source.read_bytes() + b"\0"
        )
    return digest.hexdigest()[:12]
