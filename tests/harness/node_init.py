"""Be process 1 of a real node: `unshare --pid --mount ... python -I -S node_init.py PLAN`.

Owns what happens inside a node's own namespaces: its mounts, its programs in order, and that nobody
stays a zombie. The kernel ends all of it at once when this process ends. Runs on its own, in
isolated mode: imports nothing of ours.

PLAN is a JSON file: `tmpfs` {path: size}, `binds` [[source, target]], `contents` {path: text}
(bound over it, for us only), `links` [[target, link]], `programs` [{name, command, log,
environment, socket, then}]: each is started when the one before has made its `socket` and `then` (a
list of commands) is done, and started again when it ends, as systemd would; one that ends within
moments ends the node, since it would do so again.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

STEADY_SECONDS = 3.0
SOCKET_SECONDS = 60.0


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def prepare(plan: dict[str, Any]) -> None:
    """Make the mounts. They are this namespace's alone, and end with it."""
    # Shared within the namespace: what containerd mounts below a volume must reach the containers.
    mount("--make-rshared", "/")
    for path, size in plan["tmpfs"].items():
        mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", path)
    for source, target in plan["binds"]:
        mount("--bind", source, target)
    scratch = Path(plan["scratch"])
    for number, (path, text) in enumerate(plan["contents"].items()):
        stand_in = scratch / f"contents-{number}"
        stand_in.write_text(text)
        if Path(path).exists():
            mount("--bind", str(stand_in), path)


def start(program: dict[str, Any]) -> int:
    """Start a program and, when it names a socket, wait for that; returns its process id."""
    with Path(program["log"]).open("ab") as log:
        started = subprocess.Popen(
            program["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **program.get("environment", {})},
            start_new_session=True,
        )
    deadline = time.monotonic() + SOCKET_SECONDS
    while program.get("socket") and not Path(program["socket"]).exists():
        if started.poll() is not None or time.monotonic() > deadline:
            sys.exit(
                f"{program['name']}: no socket {program['socket']}, status {started.returncode}"
            )
        time.sleep(0.02)
    # Ours to wait for from here on: the loop below reaps every child by `waitpid`.
    started.returncode = 0
    return started.pid


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    plan = json.loads(Path(sys.argv[1]).read_text())
    prepare(plan)
    running: dict[int, tuple[dict[str, Any], float]] = {}
    for program in plan["programs"]:
        running[start(program)] = (program, time.monotonic())
        for command in program.get("then", ()):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid not in running:
            continue  # an orphan: what a shim or a dead program left
        program, since = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        print(f"{program['name']} ended with status {code}", file=sys.stderr, flush=True)  # noqa: T201 (our log)
        if code >= 0 and time.monotonic() - since < STEADY_SECONDS:
            sys.exit(1)
        # A socket of the dead program would be taken for one of the new program.
        if program.get("socket"):
            Path(program["socket"]).unlink(missing_ok=True)
        running[start(program)] = (program, time.monotonic())


if __name__ == "__main__":
    main()
