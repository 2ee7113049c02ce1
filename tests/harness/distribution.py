"""The reference registry (Debian's docker-registry) on loopback, with nothing in it.

Owns one server and its folder. For what pushes as people's tools do; a registry whose speed and
health a test sets is `registry`'s.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Self

from tests.harness.binaries import ensure_binary
from tests.harness.life import Started
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.processes import Process, RunFolder
from tests.harness.waiting import wait_until
from tools.registry import Registry, RegistryError

READY_SECONDS = 30.0
USER = "me"
PASSWORD = "not to be printed"
# bcrypt's of the password; its cost is the smallest.
_HASH = "$2b$04$abcdefghijklmnopqrstuu56e0WgEYEwR6j02uyKlYoO1i/ZkJyQ2"


class DistributionRegistry(Started):
    """`with DistributionRegistry() as registry:` answers at `registry.host`.

    asks: only USER with PASSWORD may pull and push.
    """

    def __init__(self, *, asks: bool = False) -> None:
        self._asks = asks

    def start(self) -> Self:
        """Raises HarnessUnavailableError where the program can't be had."""
        program = ensure_binary("docker-registry")
        self._run = RunFolder()
        self._data = Path(tempfile.mkdtemp(prefix="roost-registry-"))
        self._port = ReservedPort().release()
        settings = {
            "version": 0.1,
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": str(self._data)}},
            "http": {"addr": self.host},
        }
        if self._asks:
            logins = self._data / "htpasswd"
            logins.write_text(f"{USER}:{_HASH}\n")
            settings["auth"] = {"htpasswd": {"realm": "test", "path": str(logins)}}
        # JSON is YAML.
        config = self._data / "config.yml"
        config.write_text(json.dumps(settings))
        self._process: Process = self._run.start("docker-registry", program, ["serve", str(config)])
        try:
            wait_until(self._answers, READY_SECONDS, self.host, explain=self._process.tail)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self._process.kill()
        self._run.close()
        shutil.rmtree(self._data, ignore_errors=True)

    @property
    def host(self) -> str:
        return f"{LOOPBACK}:{self._port}"

    def _answers(self) -> bool:
        try:
            Registry(self.host, environment={}).check("nothing")
        except RegistryError as error:
            return "asks who you are" in str(error)
        return True
