"""Start programs that die with us, keep their logs in one folder, and sweep what dead runs left.

Owns child processes and their folder. Guarantees: a child doesn't outlive its Python parent, even
one that was killed with SIGKILL (on Linux; elsewhere the next run stops it); processes are stopped
by id only, never by name.
"""

import atexit
import contextlib
import fcntl
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from tests.harness.waiting import wait_until

_GUARD = Path(__file__).with_name("die_with_parent.py")
_KEPT = "kept-"
_UNBORN = ".new-"
_LOCK_FILE = "owner.lock"
_CHILDREN_FILE = "children.jsonl"
# Folders of failed runs that stay for reading, newest first.
KEPT_RUNS = 10
# A folder gets its name within milliseconds; one that is older than this never will.
UNBORN_SECONDS = 600.0


class ProgramExitedError(RuntimeError):
    """A program ended before it was ready; the message ends with its last words."""


class Process:
    def __init__(self, name: str, popen: subprocess.Popen[bytes], log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self._popen = popen

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._popen.poll()

    @property
    def is_running(self) -> bool:
        return self.exit_code is None

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def log_lines(self, text: str) -> list[str]:
        return [line for line in self.log().splitlines() if text in line]

    def wait_for_log(self, text: str, timeout_seconds: float = 30.0) -> str:
        """Wait for a line that holds `text`, and return it.

        Raises ProgramExitedError when the program ends before.
        """

        def find() -> str | None:
            ended = self.exit_code is not None  # asked first: what it wrote until then counts
            lines = self.log_lines(text)
            if not lines and ended:
                raise ProgramExitedError(self.epitaph(f"before it wrote {text!r}"))
            return lines[0] if lines else None

        def explain() -> str:
            return f"its end:\n{self.tail()}"

        return wait_until(find, timeout_seconds, f"{text!r} in {self.log_path}", explain=explain)

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log().splitlines()[-lines:])

    def epitaph(self, when: str) -> str:
        return (
            f"{self.name} ended with status {self.exit_code} {when}; the end of"
            f" {self.log_path}:\n{self.tail()}"
        )

    def freeze(self) -> None:
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._popen.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait for the end.

        Works on a frozen process, and is harmless on one that has ended.
        """
        self._popen.kill()
        self._popen.wait()

    def stop(self, grace_seconds: float = 30.0) -> int:
        """SIGTERM, and SIGKILL after as long as a pod has by default."""
        self._popen.terminate()
        try:
            return self._popen.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._popen.wait()


class RunFolder:
    """A private folder for one control plane: data, keys, logs and the list of its processes.

    Removed by `close`; renamed to `kept-...` instead when the run failed, so that its logs can be
    read.
    """

    def __init__(self, root: Path | None = None) -> None:
        self._root = root or Path(tempfile.gettempdir()) / f"roost-test-clusters-{os.getuid()}"
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep_dead_runs(self._root)
        # The lock is taken before the folder gets a name that sweepers look at.
        unborn = Path(tempfile.mkdtemp(prefix=_UNBORN, dir=self._root))
        self._lock = (unborn / _LOCK_FILE).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = unborn.rename(
            self._root / f"run-{os.getpid()}-{unborn.name.removeprefix('.new-')}"
        )
        self._processes: list[Process] = []
        # A script that ends without closing us leaves nothing either.
        atexit.register(self.close)

    def start(
        self,
        name: str,
        program: Path,
        arguments: Sequence[str] = (),
        *,
        environment: Mapping[str, str] | None = None,
        log_path: Path | None = None,
        working_folder: Path | None = None,
    ) -> Process:
        """Start a program that dies with us; its stdout and stderr go to `log_path`, by default
        NAME.log in the folder.

        environment: added to ours.
        """
        log_path = log_path or self.path / f"{name}.log"
        log_path.parent.mkdir(parents=True, exist_ok=True)
        taken_over, pipe = os.pipe()
        command = [
            sys.executable,
            "-I",
            "-S",
            str(_GUARD),
            str(os.getpid()),
            str(pipe),
            str(program),
            *arguments,
        ]
        with (
            log_path.open("ab") as log_file,
            os.fdopen(taken_over, "rb") as told,
            os.fdopen(pipe, "wb") as child_end,
        ):

            def spawn() -> subprocess.Popen[bytes]:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log_file,
                    stderr=subprocess.STDOUT,
                    cwd=working_folder or self.path,
                    env={**os.environ, **(environment or {})},
                    # A Ctrl-C in the terminal reaches us only, and we stop the programs in order.
                    start_new_session=True,
                    pass_fds=(pipe,),
                )

            popen = _spawner().call(spawn)
            process = Process(name, popen, log_path)
            self._processes.append(process)
            # A signal before the program has taken over would hit the guard, and a frozen guard
            # guards nothing.
            child_end.close()
            fault = told.read().decode()
        if fault:
            raise ProgramExitedError(f"{name} did not start: {fault}")
        with (self.path / _CHILDREN_FILE).open("a") as children:
            children.write(
                json.dumps({"pid": popen.pid, "started": _start_ticks(popen.pid), "name": name})
                + "\n"
            )
        return process

    def close(self, *, keep: bool = False) -> Path | None:
        """Kill what still runs, the last started first, and remove the folder.

        keep: rename it instead, and return its new path.
        """
        atexit.unregister(self.close)
        for process in reversed(self._processes):
            # All state is thrown away with the folder, so there is nothing that a slower stop would
            # save.
            process.kill()
        self._processes.clear()
        kept = None
        if keep and self.path.exists():
            kept = self.path.rename(self._root / f"{_KEPT}{self.path.name.removeprefix('run-')}")
        else:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()
        return kept


def sweep_dead_runs(root: Path) -> None:
    """Kill the processes and remove the folders of runs whose owner is dead; of kept folders leave
    the newest.
    """
    for folder in root.glob("run-*"):
        try:
            with (folder / _LOCK_FILE).open("r+") as lock_file:
                fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _kill_children_of(folder)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its owner is alive and holds the lock, or another sweep was faster
            continue
    kept = sorted(root.glob(f"{_KEPT}*"), key=_changed_at, reverse=True)
    unborn = [
        folder
        for folder in root.glob(f"{_UNBORN}*")
        if time.time() - _changed_at(folder) > UNBORN_SECONDS
    ]
    for folder in (*kept[KEPT_RUNS:], *unborn):
        shutil.rmtree(folder, ignore_errors=True)


def _changed_at(path: Path) -> float:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _kill_children_of(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        for line in (folder / _CHILDREN_FILE).read_text().splitlines():
            child = json.loads(line)
            # A pid alone may have a new owner by now; pid and start time together never do.
            if child["started"] is not None and _start_ticks(child["pid"]) == child["started"]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child["pid"], signal.SIGKILL)


def _start_ticks(pid: int) -> str | None:
    """When a process started, as the kernel counts; None: there is none, or this isn't Linux."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command's name, in brackets, may hold spaces; the start time is the 20th field after it.
    return stat.rpartition(")")[2].split()[19]


class _Spawner:
    """Starts processes from one thread that lives as long as the program.

    The kernel's "parent died" means the *thread* that started the child: one started from a test's
    short thread would be killed when that thread ends.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[
            tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]
        ]
        self._calls = queue.SimpleQueue()
        self.pid = os.getpid()
        threading.Thread(target=self._work, name="spawner", daemon=True).start()

    def call(self, spawn: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        result: Future[subprocess.Popen[bytes]] = Future()
        self._calls.put((spawn, result))
        return result.result()

    def _work(self) -> None:
        while True:
            spawn, result = self._calls.get()
            try:
                result.set_result(spawn())
            except BaseException as error:  # noqa: BLE001 (handed to the caller)
                result.set_exception(error)
            del spawn, result  # a thread that waits must not keep the last child alive


_spawner_lock = threading.Lock()
_current_spawner: _Spawner | None = None


def _spawner() -> _Spawner:
    global _current_spawner  # noqa: PLW0603 (one thread a process)
    with _spawner_lock:
        if _current_spawner is None or _current_spawner.pid != os.getpid():  # a fork has no threads
            _current_spawner = _Spawner()
        return _current_spawner


def is_alive(pid: int) -> bool:
    """Whether a process of that id runs; a zombie, which nobody has waited for, doesn't count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True
