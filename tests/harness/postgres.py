"""Run a real PostgreSQL on loopback, with an empty database of its own, and leave nothing.

Owns one server: its folder, port and password. It dies with the Python process, as all programs of
the harness do.
"""

import contextlib
import grp
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import psycopg

from tests.harness.binaries import HarnessUnavailableError
from tests.harness.life import Started
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.processes import Process, ProgramExitedError, RunFolder
from tests.harness.waiting import wait_until

READY_SECONDS = 60.0
USER = "roost"
# Debian keeps the server's programs out of the PATH.
DEBIAN = Path("/usr/lib/postgresql")
# PostgreSQL refuses to run as root.
UNPRIVILEGED = ("postgres", "nobody")


class Postgres(Started):
    """One server: `with Postgres() as server: Store.open(server.url("name"))`, after
    `server.create("name")`.

    durable: commits wait for the disk, as by default; False is faster, and the data dies with the
    test anyway.
    """

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        self._password = secrets.token_urlsafe(16)

    def start(self) -> Self:
        """Make the folder and start the server in it.

        Raises HarnessUnavailableError where none can run.
        """
        self._programs = find_programs()
        self._run = RunFolder()
        # Not in the run's folder, which only we may enter.
        self._folder = Path(tempfile.mkdtemp(prefix="roost-postgres-"))
        try:
            self._initialise()
            self._port = ReservedPort().release()
            self.up()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self.down()
        self._run.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def up(self) -> None:
        """Start the server, or after `down` the same one again, with the same data."""
        synced = "on" if self._durable else "off"
        settings = {
            "listen_addresses": LOOPBACK,
            "port": self._port,
            "unix_socket_directories": "",
            "fsync": synced,
        }
        arguments = ["-D", str(self._folder / "data")]
        for name, value in settings.items():
            arguments += ["-c", f"{name}={value}"]
        program, *before = self._as_user(self._programs / "postgres")
        self.process = self._run.start(
            "postgres", Path(program), [*before, *arguments], working_folder=self._folder
        )
        wait_until(self._answers, READY_SECONDS, "PostgreSQL to answer", explain=self.process.tail)

    def down(self, *, kill: bool = False) -> None:
        """Stop the server at once; its connections break. kill: with SIGKILL."""
        process: Process | None = getattr(self, "process", None)
        if process is None:
            return
        if not kill:
            # SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for its clients.
            with contextlib.suppress(subprocess.CalledProcessError):
                self._call("pg_ctl", "stop", "-D", str(self._folder / "data"), "-m", "fast", "-w")
        process.kill()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}:{self._password}@{LOOPBACK}:{self._port}/{database}"

    def create(self, database: str) -> str:
        self.execute(f'CREATE DATABASE "{database}"')
        return self.url(database)

    def drop(self, database: str) -> None:
        self.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def _initialise(self) -> None:
        if (owner := _owner()) is not None:
            shutil.chown(self._folder, *owner)
        password_path = self._folder / "password"
        with os.fdopen(os.open(password_path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(self._password)
        if owner is not None:
            shutil.chown(password_path, *owner)
        flags = [
            f"--username={USER}",
            "--auth=scram-sha-256",
            f"--pwfile={password_path}",
            "--encoding=UTF8",
        ]
        try:
            self._call(
                "initdb", "-D", str(self._folder / "data"), *flags, "--locale=C", "--no-sync"
            )
        except subprocess.CalledProcessError as error:
            raise HarnessUnavailableError(
                f"initdb failed: {' '.join(error.stderr.split())[-500:]}"
            ) from None

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            if not self.process.is_running:
                raise ProgramExitedError(self.process.epitaph("before it answered")) from None
            return False
        return True

    def _call(self, program: str, *arguments: str) -> None:
        command = [*self._as_user(self._programs / program), *arguments]
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            cwd=self._folder,
            env=_environment(),
        )

    @staticmethod
    def _as_user(program: Path) -> list[str]:
        if (owner := _owner()) is None:
            return [str(program)]
        user, group = owner
        # The kernel forgets "die with your parent" when the user changes. SIGQUIT is PostgreSQL's
        # immediate shutdown.
        change = [f"--reuid={user}", f"--regid={group}", "--clear-groups", "--pdeathsig=QUIT"]
        return [shutil.which("setpriv") or "setpriv", *change, "--", str(program)]


def find_programs() -> Path:
    """The folder of initdb, postgres and pg_ctl: Debian's newest, or the one in the PATH."""
    folders = sorted(DEBIAN.glob("*/bin"), key=lambda path: float(path.parent.name))
    if (found := shutil.which("initdb")) is not None:
        folders.append(Path(found).resolve().parent)
    for folder in reversed(folders):
        if (folder / "postgres").exists():
            if os.getuid() == 0 and (shutil.which("setpriv") is None or _owner() is None):
                raise HarnessUnavailableError(
                    "PostgreSQL doesn't run as root, and setpriv or another user is missing"
                )
            return folder
    raise HarnessUnavailableError("PostgreSQL's server is missing: apt-get install postgresql")


def _owner() -> tuple[str, str] | None:
    if os.getuid() != 0:
        return None
    for name in UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return user.pw_name, grp.getgrgid(user.pw_gid).gr_name
    return None


def _environment() -> Mapping[str, str]:
    return {**os.environ, "LC_ALL": "C"}
