"""What a JupyterLab start costs, from its process to its first answer: `python -m
benchmarks.lab_start`.

A "node" is a control group on so many cores; each server, and each neighbour, is a group of its own
in it with the shares that a kubelet gives a pod. A thread plays the hub. The node is given
precedence over the rest of the machine; each row says how much of its cores was used: less than
all, while servers had work, means that seconds are too many. Needs root, cgroup v1, and the
internet once. From disk: files' contents are dropped from memory, folders' aren't.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.figures import machine, say, spread, table
from tests.harness.binaries import cache_root
from tests.harness.cgroups import hierarchies, make_group, remove_group
from tests.harness.ports import LOOPBACK, ReservedPort

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# What jupyter/base-notebook installs.
PACKAGES: Final = ("jupyterlab==4.6.6", "notebook==7.6.5", "nbclassic==1.3.3", "jupyterhub==5.5.0")
LIMIT_SECONDS: Final = 120.0
# What a kubelet gives a pod that requests no processor time, and one that requests 0.05.
NONE = 2
GUARANTEE = 51
MOST = 262144
BUSY: Final = [sys.executable, "-c", "while True: pass"]
# Reads and MB a second of disks in clouds: the baseline of AWS's gp3, and Google's pd-standard of
# 100 GB.
GP3 = (3000, 125)
STANDARD = (75, 12)
SETTINGS: Final = (
    "--LabApp.extension_manager=readonly",
    "--LanguageServerManager.autodetect=False",
)
SWITCHED_OFF: Final = (
    "nbclassic",
    "notebook",
    "notebook_shim",
    "jupyter_lsp",
    "jupyter_server_terminals",
)
SETTLE_SECONDS: Final = 15.0


class Case(NamedTuple):
    """What is started, and where."""

    name: str
    at_once: int = 1
    cores: int = 1
    cold: bool = False
    disk: tuple[int, int] | None = None
    before: Callable[[], object] = lambda: None  # after the files were dropped
    unpacked: bool = False  # from a copy that was just made
    plain: bool = False  # without compiled modules
    other_parser: bool = False
    extensions_off: Sequence[str] = ()
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = {}
    shares: int = NONE
    limit: float = 0  # cores of one server's own; 0: no limit
    busy: int = 0
    busy_shares: int = NONE
    settle: bool = False  # measure what idle servers use


class Start(NamedTuple):
    """Seconds to the API's answer and to the page of /lab; until the first, processor seconds and
    MB read.
    """

    api: float
    page: float
    cpu: float
    read: float


class Run(NamedTuple):
    """The starts of one run, the share of the node's cores that was used, cores of an idle server,
    servers' output.
    """

    starts: list[Start]
    used: float
    idle: float | None
    written: str


class Group:
    """A control group of a node or of a pod in it."""

    def __init__(self, name: str) -> None:
        self._folders = [hierarchy / name for hierarchy in hierarchies()]
        for folder in self._folders:
            folder.mkdir(exist_ok=True)
            for needed in ("cpuset.cpus", "cpuset.mems"):  # a group without them takes no process
                with suppress(OSError):
                    (folder / needed).write_text((folder.parent / needed).read_text())

    def set(self, name: str, value: object) -> None:
        """Write a control file, such as cpu.shares. Raises LookupError without cgroup v1."""
        for folder in self._folders:
            if (folder / name).exists():
                (folder / name).write_text(str(value))
                return
        raise LookupError(
            f"no {name} of control groups: this benchmark needs cgroup v1 and its cpu, cpuset and"
            " blkio"
        )

    def start(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        log: Path = Path(os.devnull),
    ) -> subprocess.Popen[bytes]:
        """Start a program in it."""
        join = "".join(f"echo $$ > {folder}/cgroup.procs; " for folder in self._folders)
        wrapped = ["sh", "-c", f'{{ {join}}} 2>/dev/null; exec "$@"', "sh", *command]
        with log.open("w") as output:
            return subprocess.Popen(wrapped, env=environment, stdout=output, stderr=output)

    def cpu(self) -> float:
        """Processor seconds until now, with those of the groups in it."""
        usage = next(
            folder / "cpuacct.usage"
            for folder in self._folders
            if (folder / "cpuacct.usage").exists()
        )
        return int(usage.read_text()) / 1e9


def ensure_lab() -> Path:
    """The folder of an environment with JupyterLab, in the per-user cache; beside it `lab-plain`,
    its twin without compiled modules, and `lab-parser`, for PYTHONPATH: the parser of addresses
    that jsonschema prefers."""
    lab = cache_root() / "lab"
    if not (lab / "whole").exists():
        shutil.rmtree(lab, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", lab], check=True)
        pip = [f"{lab}/bin/python", "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *PACKAGES], check=True)
        subprocess.run([*pip, "--upgrade", f"--target={lab}-parser", "rfc3987==1.3.8"], check=True)
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(
            lab,
            f"{lab}-plain",
            symlinks=True,
            copy_function=os.link,
            ignore=without,
            dirs_exist_ok=True,
        )
        (lab / "whole").touch()
    return lab


def files() -> list[Path]:
    """Of the image: JupyterLab and Python's own modules."""
    return [
        Path(folder, name)
        for root in (ensure_lab(), Path(os.__file__).parent)
        for folder, _, names in os.walk(root)
        if "/site-packages" not in folder or root == ensure_lab()
        for name in names
    ]


def drop() -> None:
    """Have the files read from the disk again."""
    os.sync()
    for path in files():
        handle = os.open(path, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def read_all() -> float:
    """As a pod does that reads the image's files ahead; returns MB."""
    return sum(len(path.read_bytes()) for path in files()) / 1e6


class Hub(BaseHTTPRequestHandler):
    """What a single-user server asks its hub."""

    def do_GET(self) -> None:
        """The hub's version, or the user whose token it is."""
        answer = {"version": "5.5.0", "kind": "user", "name": "u", "admin": False, "groups": []}
        body = json.dumps(
            {**answer, "scopes": ["access:servers!user=u", "read:users!user=u"]}
        ).encode()
        self.send_response(200)
        self.send_header("X-JupyterHub-Version", "5.5.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Activity."""
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def server_command(lab: Path) -> list[str]:
    """How a server is started."""
    return [f"{lab}/bin/python", "-m", "jupyterhub.singleuser", "--allow-root"]


def server_environment(lab: Path, hub: str, home: Path, url: str) -> dict[str, str]:
    """What a hub tells a server: hub and url are addresses, of which url ends in /user/u/."""
    return {
        "HOME": str(home),
        "PATH": f"{lab}/bin:{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",  # as where the image belongs to root
        "JUPYTERHUB_API_TOKEN": "t",
        "JUPYTERHUB_API_URL": f"{hub}/hub/api",
        "JUPYTERHUB_ACTIVITY_URL": f"{hub}/hub/api/users/u/activity",
        "JUPYTERHUB_OAUTH_ACCESS_SCOPES": '["access:servers!user=u"]',
        "JUPYTERHUB_USER": "u",
        "JUPYTERHUB_CLIENT_ID": "c",
        "JUPYTERHUB_BASE_URL": "/",
        "JUPYTERHUB_SERVICE_PREFIX": "/user/u/",
        "JUPYTERHUB_SERVICE_URL": url,
    }


def play(case: Case, hub: str) -> Run:
    """Start a case's servers once.

    Raises RuntimeError, with what they wrote, if one ends or refuses.
    """
    lab = ensure_lab()
    node_name = make_group()
    node = Group(node_name)
    processes = list[subprocess.Popen[bytes]]()
    node.set("cpu.shares", MOST)
    node.set("cpuset.cpus", f"0-{case.cores - 1}")
    with tempfile.TemporaryDirectory(dir=cache_root()) as scratch, ExitStack() as stack:
        stack.callback(lambda: [process.wait() for process in processes])
        stack.callback(remove_group, node_name)  # ends them
        for number in range(case.busy):
            pod = Group(f"{node_name}/busy-{number}")
            pod.set("cpu.shares", case.busy_shares)
            processes.append(pod.start(BUSY))
        if case.cold:
            drop()
        case.before()
        if case.plain:
            lab = lab.with_name("lab-plain")
        if case.unpacked:
            lab = Path(shutil.copytree(lab, f"{scratch}/lab", symlinks=True))
        starts: list[Start] = []

        def start(number: int) -> None:
            pod = Group(f"{node_name}/user-{number}")
            pod.set("cpu.shares", case.shares)
            if case.limit:
                pod.set("cpu.cfs_quota_us", int(case.limit * 100_000))
            if case.disk:
                device = cache_root().stat().st_dev
                for kind, most in (("iops", case.disk[0]), ("bps", case.disk[1] * 1_000_000)):
                    pod.set(
                        f"blkio.throttle.read_{kind}_device",
                        f"{os.major(device)}:{os.minor(device)} {most}",
                    )
            home = Path(scratch, str(number))
            (home / ".jupyter").mkdir(parents=True)
            settings = {
                "ServerApp": {"jpserver_extensions": dict.fromkeys(case.extensions_off, False)}
            }
            (home / ".jupyter/jupyter_server_config.json").write_text(json.dumps(settings))
            url = f"http://{LOOPBACK}:{ReservedPort().release()}/user/u/"
            parser = f"{ensure_lab()}-parser" if case.other_parser else ""
            environment = {
                **server_environment(lab, hub, home, url),
                "PYTHONPATH": parser,
                **case.environment,
            }
            command = [*server_command(lab), *case.arguments]
            began = time.monotonic()
            server = pod.start(command, environment=environment, log=Path(scratch, f"{number}.log"))
            processes.append(server)
            api = wait_for_answer(f"{url}api", began)
            cpu = pod.cpu()
            read = int(
                Path(f"/proc/{server.pid}/io").read_text().partition("\nread_bytes: ")[2].split()[0]
            )
            starts.append(Start(api, wait_for_answer(f"{url}lab", began), cpu, read / 1e6))

        began = time.monotonic()
        before = node.cpu()
        threads = [threading.Thread(target=start, args=(number,)) for number in range(case.at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        used = (node.cpu() - before) / (time.monotonic() - began) / case.cores
        written = "".join(path.read_text(errors="replace") for path in Path(scratch).glob("*.log"))
        if len(starts) < case.at_once:
            raise RuntimeError(
                f"{case.name}: a server ended or refused; it wrote:\n{written[-3000:]}"
            )
        idle = None
        if case.settle:
            # what follows a start, such as the look for language servers, isn't idle
            time.sleep(SETTLE_SECONDS)
            before = node.cpu()
            time.sleep(SETTLE_SECONDS)
            idle = (node.cpu() - before) / SETTLE_SECONDS / case.at_once
        return Run(starts, used, idle, written)


def wait_for_answer(url: str, began: float) -> float:
    """Seconds since `began` at the first 200, LIMIT_SECONDS if it never comes.

    Raises HTTPError when refused.
    """
    request = urllib.request.Request(url, headers={"Authorization": "token t"})
    while (now := time.monotonic() - began) < LIMIT_SECONDS:
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_SECONDS - now):
                return time.monotonic() - began
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                raise
        except OSError:
            pass
        time.sleep(0.05)
    return LIMIT_SECONDS


CASES: Final = (
    Case("alone on a node of one core, files in memory"),
    Case("image just unpacked", unpacked=True),
    Case("files on disk, this machine's", cold=True),
    Case("files on disk, gp3", cold=True, disk=GP3),
    Case("files on disk, pd-standard of 100 GB", cold=True, disk=STANDARD),
    Case("the same, read ahead", cold=True, disk=STANDARD, before=read_all),
    Case("no compiled modules", plain=True),
    Case("rfc3987 installed", other_parser=True),
    Case("five extensions off", extensions_off=SWITCHED_OFF),
    Case("settings: read-only extension manager, no language servers", arguments=SETTINGS),
    Case(
        "these three together", other_parser=True, extensions_off=SWITCHED_OFF, arguments=SETTINGS
    ),
    *(Case(f"{n} at once on one core", at_once=n) for n in (2, 5)),
    Case("10 at once on one core", at_once=10, settle=True),
    *(Case(f"{n} at once on two cores", at_once=n, cores=2) for n in (1, 2, 5, 10)),
    Case("1 busy neighbour, equal shares", busy=1),
    Case("4 busy neighbours, equal shares", busy=4),
    Case("4 busy neighbours, cpu_guarantee 0.05 for the start only", busy=4, shares=GUARANTEE),
    Case(
        "1 busy neighbour, cpu_guarantee 0.05 for the neighbour only", busy=1, busy_shares=GUARANTEE
    ),
    Case("cpu_limit 0.5", limit=0.5),
)


def imports(hub: str) -> str:
    """Which share of a start is imports, and whose."""
    run = play(Case("imports", environment={"PYTHONPROFILEIMPORTTIME": "1"}), hub)
    own: dict[str, float] = defaultdict(float)
    for micros, name in re.findall(r"import time: +(\d+) \| +\d+ \| +([\w.]+)", run.written):
        own[name.partition(".")[0]] += int(micros) / 1e6
    first = ", ".join(
        f"{name} {seconds:.2f}"
        for name, seconds in sorted(own.items(), key=lambda item: -item[1])[:6]
    )
    return (
        f"imports {sum(own.values()):.2f} s of {run.starts[0].api:.2f} s ({run.used:.0%} of the"
        f" core used): {first}"
    )


def main() -> None:
    """Play the rounds and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="how often each case is started")
    parser.add_argument("--only", default="", help="cases whose names match this pattern")
    options = parser.parse_args()
    cases = [case for case in CASES if re.search(options.only, case.name)]
    ensure_lab()
    say(f"{machine()}; the image: {len(files())} files, {read_all():.0f} MB")
    server = ThreadingHTTPServer((LOOPBACK, 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hub = f"http://{LOOPBACK}:{server.server_port}"
    play(CASES[0], hub)  # brings the files into memory
    runs: dict[str, list[Run]] = {case.name: [] for case in cases}
    for round_ in range(options.rounds):
        for case in cases:
            run = play(case, hub)
            runs[case.name].append(run)
            last = max(start.api for start in run.starts)
            say(
                f"{round_ + 1} {case.name}: {last:.2f} s, {run.used:.0%} used, load"
                f" {os.getloadavg()[0]:.0f}"
            )
    columns: dict[str, Callable[[Run], float]] = {
        "s to 200, median": lambda run: median(start.api for start in run.starts),
        "last": lambda run: max(start.api for start in run.starts),
        "CPU s a start": lambda run: mean(start.cpu for start in run.starts),
        "MB read": lambda run: mean(start.read for start in run.starts),
        "of the cores used": lambda run: run.used,
    }
    rows = [
        [name, *(spread(map(of, played)) for of in columns.values())]
        for name, played in runs.items()
    ]
    print(table(["case", *columns], rows))
    every = [start for played in runs.values() for run in played for start in run.starts]
    print(
        f"from there to the page of /lab: {spread([start.page - start.api for start in every])} s"
    )
    idle = [run.idle for played in runs.values() for run in played if run.idle is not None]
    print(f"cores of an idle server: {spread(idle)}")
    for _ in range(options.rounds):
        print(imports(hub))


if __name__ == "__main__":
    main()
