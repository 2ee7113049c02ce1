"""The test control plane's programs: pinned Go programs, built once, and some of Debian's packages,
unpacked once.

Owns which programs there are, their versions (read from the go.mod files, never repeated here) and
where they lie: `${XDG_CACHE_HOME:-~/.cache}/roost/bin/<program>-<version>-<hash of inputs>`,
Debian's in `<program>-debian`. A fresh clone finds them again. Files of a program's module that it
can't do without, such as its CustomResourceDefinitions, lie beside it in `<the same>.files`.
Guarantee: a program is built by one process at a time, and appears whole or not at all.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roost_core.scheduler import plugins
from tests.harness.talk import say

MODULES = Path(__file__).resolve().parent.parent / "controlplane"
# every Kubernetes minor that Roost supports
MINORS = tuple(f"1.{minor}" for minor in range(plugins.OLDEST_MINOR, plugins.NEWEST_MINOR + 1))
OLDEST_MINOR = MINORS[0]
NEWEST_MINOR = MINORS[-1]
# The oldest Go that fetches by itself the newer Go that a go.mod asks for.
OLDEST_GO = (1, 21)
COMPONENT_VERSION = "k8s.io/component-base/version"


class HarnessUnavailableError(RuntimeError):
    """The real control plane can't run on this machine, for a reason that the message names along
    with the fix.
    """


class BuildError(RuntimeError):
    """Go is there, but a program did not build; the message ends with what Go said."""


@dataclass(frozen=True, slots=True)
class Program:
    """One main package of one pinned module, or of our own."""

    name: str
    folder: str  # of the go.mod, under tests/controlplane
    package: str  # what `go build` is given
    module: str  # whose version is the program's version
    # may use {version}, {major}, {minor} and {client_go_minor}
    linker_variables: tuple[str, ...] = ()
    for_each_minor: bool = False  # one version for each of MINORS; else there is one version
    # globs in the module's folder: kept beside the program, by their base names
    module_files: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # of a main package of our own: its files, beside the go.mod

    def mod_file(self, minor: str) -> Path:
        """The go.mod that pins the program for one Kubernetes minor."""
        file_name = (
            "go.mod" if minor == NEWEST_MINOR or not self.for_each_minor else f"minor-{minor}.mod"
        )
        return MODULES / self.folder / file_name

    def version(self, minor: str = NEWEST_MINOR) -> str:
        """Such as v1.37.2; "own" for a program that is all our own."""
        if not self.module:
            return "own"
        return _pinned_version(self.mod_file(minor), self.module)


# Without these a server calls itself v0.0.0-master and clients choke on it.
KUBERNETES_VARIABLES = tuple(
    f"{COMPONENT_VERSION}.{key}={value}"
    for key, value in (
        ("gitVersion", "{version}"),
        ("gitMajor", "{major}"),
        ("gitMinor", "{minor}"),
    )
)


def _kubernetes(name: str, *, for_each_minor: bool = True) -> Program:
    package = f"k8s.io/kubernetes/cmd/{name}"
    return Program(
        name, "kubernetes", package, "k8s.io/kubernetes", KUBERNETES_VARIABLES, for_each_minor
    )


def _cni(name: str, kind: str) -> Program:
    module = "github.com/containernetworking/plugins"
    return Program(name, "cni", f"{module}/plugins/{kind}/{name}", module)


GITOPS_ENGINE = "github.com/argoproj/argo-cd/gitops-engine"


def _containerd(name: str) -> Program:
    module = "github.com/containerd/containerd/v2"
    return Program(
        name,
        "containerd",
        f"{module}/cmd/{name}",
        module,
        (f"{module}/version.Version={{version}}",),
    )


def _pinned(
    name: str, module: str, path: str, *variables: str, module_files: tuple[str, ...] = ()
) -> Program:
    """A program of a module, in a folder of its own name here."""
    return Program(name, name, f"{module}/{path}", module, variables, module_files=module_files)


KUBELET = "k8s.io/kubernetes/cmd/kubelet"
HELM_3, ACTIONLINT, KARPENTER = (
    "helm.sh/helm/v3",
    "github.com/rhysd/actionlint",
    "sigs.k8s.io/karpenter",
)
# In the order in which they are built: first what most tests need.
PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        _kubernetes("kube-apiserver"),
        _kubernetes("kube-scheduler"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kubectl", for_each_minor=False),  # the newest speaks with all of them
        # Debian 12's is 3.4: without --socket-reuse-port, and too old for lists from the API
        # server's cache.
        Program("etcd", "etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3"),
        # Real nodes. The kubelet has its own go.mod: a package more in the control plane's would
        # rebuild all of that.
        Program(
            "kubelet",
            "kubelet",
            KUBELET,
            "k8s.io/kubernetes",
            KUBERNETES_VARIABLES,
            for_each_minor=True,
        ),
        _containerd("containerd"),
        _containerd("containerd-shim-runc-v2"),
        _containerd("ctr"),
        Program("in-pod", "in-pod", ".", "", sources=("main.go",)),
        # The network of pods that have one.
        _cni("bridge", "main"),
        _cni("host-local", "ipam"),
        Program("pause", "../../tools/pause", ".", "", sources=("main.go",)),  # of Roost's image
        _pinned(
            "helm",
            "helm.sh/helm/v4",
            "cmd/helm",
            "helm.sh/helm/v4/internal/version.version={version}",
        ),
        _pinned(
            "helm3",
            HELM_3,
            "cmd/helm",
            f"{HELM_3}/internal/version.version={{version}}",
            # As helm's own Makefile does: else `helm template` believes in a cluster of v1.20.
            f"{HELM_3}/pkg/chartutil.k8sVersionMajor=1",
            f"{HELM_3}/pkg/chartutil.k8sVersionMinor={{client_go_minor}}",
            f"{HELM_3}/pkg/lint/rules.k8sVersionMajor=1",
            f"{HELM_3}/pkg/lint/rules.k8sVersionMinor={{client_go_minor}}",
        ),
        _pinned(
            "kubeconform",
            "github.com/yannh/kubeconform",
            "cmd/kubeconform",
            "main.version={version}",
        ),
        _pinned("actionlint", ACTIONLINT, "cmd/actionlint", f"{ACTIONLINT}.version={{version}}"),
        # With the cloud provider whose machines are Node objects only.
        _pinned(
            "karpenter",
            KARPENTER,
            "kwok",
            f"{KARPENTER}/pkg/operator.Version={{version}}",
            module_files=("pkg/apis/crds/*.yaml", "kwok/apis/crds/*.yaml"),
        ),
        _pinned("descheduler", "sigs.k8s.io/descheduler", "cmd/descheduler"),
        # Argo CD's engine and Flux's libraries, on the control plane's own versions of what both
        # stand on: nine in ten of its packages are compiled already.
        Program("gitops", "gitops", ".", GITOPS_ENGINE, sources=("main.go", "argo.go", "flux.go")),
    )
}
# program -> (Debian package, the program's path in it). They are unpacked, not installed: no
# service starts.
PACKAGED = {
    "docker-registry": ("docker-registry", "usr/bin/docker-registry"),
    "prometheus": ("prometheus", "usr/bin/prometheus"),
    "promtool": ("prometheus", "usr/bin/promtool"),
    "runc": ("runc", "usr/sbin/runc"),
}
REAL_NODE = (
    "kubelet",
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "runc",
    "in-pod",
    "bridge",
    "host-local",
)
# What `make test` needs of the oldest minor.
CONTROL_PLANE = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")


def cache_root() -> Path:
    """The per-user folder for what outlives a clone."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost"


def cached_path(name: str, minor: str = NEWEST_MINOR) -> Path:
    if name in PACKAGED:
        return cache_root() / "bin" / f"{name}-debian"
    program, version = _known(name, minor), _known(name, minor).version(minor)
    return cache_root() / "bin" / f"{name}-{version}-{_hash_of_inputs(program, minor)}"


def ensure_binary(name: str, minor: str = NEWEST_MINOR) -> Path:
    """Path of a program ready to run: from the cache, or built or unpacked now.

    minor: the Kubernetes minor; programs that aren't Kubernetes' own have one version for all.
    Raises HarnessUnavailableError when it can't be had here, BuildError when its build fails.
    """
    if name in PACKAGED:
        return _unpacked(name)
    return _built(name, minor)


def ensure_module_files(name: str) -> Path:
    """Folder with the program's `module_files`; builds it where it isn't yet, with the errors of
    `ensure_binary`.
    """
    return _files_of(_built(name, NEWEST_MINOR))


def find_go() -> Path:
    """The `go` command; raises HarnessUnavailableError that says what to install."""
    found = shutil.which("go")
    fix = (
        f"Install Go {OLDEST_GO[0]}.{OLDEST_GO[1]} or newer (https://go.dev/dl), then run this"
        " again."
    )
    if found is None:
        cache = cache_root() / "bin"
        raise HarnessUnavailableError(
            f"no `go` command on PATH, and the programs aren't all in {cache}. {fix}"
        )
    asked = [found, "env", "GOVERSION"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False, env=_go_environment())
    version = re.match(r"go(\d+)\.(\d+)", said.stdout)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_GO:
        raise HarnessUnavailableError(
            f"{found} is {said.stdout.strip() or said.stderr.strip()}. {fix}"
        )
    return Path(found)


def _known(name: str, minor: str) -> Program:
    if name not in PROGRAMS:
        raise ValueError(
            f"found program {name!r}, expected one of {', '.join([*PROGRAMS, *PACKAGED])}"
        )
    if minor not in MINORS:
        raise ValueError(f"found Kubernetes minor {minor!r}, expected one of {', '.join(MINORS)}")
    return PROGRAMS[name]


def _pinned_version(mod_file: Path, module: str) -> str:
    pinned = re.search(
        rf"^(?:require)?\s+{re.escape(module)} (v\S+)", mod_file.read_text(), re.MULTILINE
    )
    if pinned is None:
        raise BuildError(
            f"{mod_file}: no line that requires {module}. Run `go get {module}@VERSION` in its"
            " folder."
        )
    return pinned[1]


def _linker_flags(program: Program, minor: str) -> str:
    version = program.version(minor)
    major_number, minor_number = [*re.findall(r"\d+", version), "", ""][:2]
    facts = {"version": version, "major": major_number, "minor": minor_number}
    if any("{client_go_minor}" in variable for variable in program.linker_variables):
        client_go = _pinned_version(program.mod_file(minor), "k8s.io/client-go")
        facts["client_go_minor"] = re.findall(r"\d+", client_go)[1]
    # -s -w: no debug tables, which are a third of a Kubernetes program.
    return " ".join(
        ["-s -w", *(f"-X {variable.format(**facts)}" for variable in program.linker_variables)]
    )


def _hash_of_inputs(program: Program, minor: str) -> str:
    mod_file = program.mod_file(minor)
    sum_file = mod_file.with_suffix(".sum")
    parts = (
        mod_file.read_bytes(),
        # a module without requirements has none
        sum_file.read_bytes() if sum_file.exists() else b"",
        program.package.encode(),
        _linker_flags(program, minor).encode(),
        f"{platform.system()} {platform.machine()}".encode(),
        *(pattern.encode() for pattern in program.module_files),
        *((mod_file.parent / source).read_bytes() for source in program.sources),
    )
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def _built(name: str, minor: str) -> Path:
    target = cached_path(name, minor)
    if target.exists():
        return target
    go = find_go()
    program = PROGRAMS[name]
    target.parent.mkdir(parents=True, exist_ok=True)
    label = f"{name} {program.version(minor)}"
    # One lock for all programs: two builds at once share compiled packages badly and need twice the
    # memory.
    with _lock(target.parent / ".lock", label):
        if not target.exists():
            _build(go, program, minor, target, label)
    return target


def _unpacked(name: str) -> Path:
    package, path = PACKAGED[name]
    if installed := shutil.which(Path(path).name):
        return Path(installed)
    target = cached_path(name)
    if target.exists():
        return target
    fix = f"It comes with Debian's package {package}. As root: apt-get update"
    if shutil.which("apt-get") is None:
        raise HarnessUnavailableError(f"no {Path(path).name} on PATH, and no apt-get. {fix}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        _lock(target.parent / ".lock-debian", name),
        tempfile.TemporaryDirectory(dir=target.parent, prefix=".unpacking-") as scratch,
    ):
        if target.exists():
            return target  # by whoever held the lock
        command = f"apt-get download -qq {package} && dpkg-deb --extract {package}_*.deb ."
        if os.geteuid() == 0:
            command = f"{{ {command}; }} || {{ apt-get update -qq && {command}; }}"
        done = subprocess.run(  # noqa: S602
            command, shell=True, cwd=scratch, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise HarnessUnavailableError(
                f"{package} can't be downloaded: {done.stderr.strip()}. {fix}"
            )
        (Path(scratch) / path).rename(target)
    return target


@contextlib.contextmanager
def _lock(path: Path, label: str) -> Iterator[None]:
    """Hold the lock on `path`, saying so while another process holds it.

    The kernel frees it when its holder dies.
    """
    with path.open("a") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{label}: waiting for a build in another process")
            fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield


def _build(go: Path, program: Program, minor: str, target: Path, label: str) -> None:
    mod_file = program.mod_file(minor)
    command = [str(go), "build", "-trimpath", "-buildvcs=false", "-mod=readonly"]
    if mod_file.name != "go.mod":
        command.append(f"-modfile={mod_file.name}")
    nice = shutil.which("nice")
    if nice:  # minutes of full load: the machine stays usable
        command = [nice, "-n", "10", *command]
    say(f"{label}: building, which takes up to some minutes (kept in {target.parent})")
    started = time.monotonic()
    # Built beside the target: a rename within one folder is atomic.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".building-") as scratch:
        output = Path(scratch) / program.name
        command += ["-ldflags", _linker_flags(program, minor), "-o", str(output), program.package]
        done = subprocess.run(
            command,
            cwd=mod_file.parent,
            env=_go_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            said = "\n".join(done.stderr.splitlines()[-30:])
            raise BuildError(
                f"{label} did not build, in {mod_file.parent}: {' '.join(command)}\n{said}"
            )
        if program.module_files:
            _keep_module_files(go, program, mod_file, Path(scratch) / "files", _files_of(target))
        output.rename(target)  # last: a program that is there is whole
    say(
        f"{label}: built in {time.monotonic() - started:.0f} s,"
        f" {target.stat().st_size / 2**20:.0f} MiB"
    )


def _files_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.files")


def _keep_module_files(
    go: Path, program: Program, mod_file: Path, scratch: Path, folder: Path
) -> None:
    asked = [str(go), "list", "-m", f"-modfile={mod_file.name}", "-f", "{{.Dir}}", program.module]
    said = subprocess.run(
        asked,
        cwd=mod_file.parent,
        capture_output=True,
        text=True,
        check=False,
        env=_go_environment(),
    )
    module_folder = said.stdout.strip()
    if said.returncode != 0 or not module_folder:
        raise BuildError(
            f"{program.module}: no module folder, in {mod_file.parent}:"
            f" {' '.join(asked)}\n{said.stderr}"
        )
    scratch.mkdir()
    for pattern in program.module_files:
        if not (found := list(Path(module_folder).glob(pattern))):
            raise BuildError(
                f"{module_folder}: no file {pattern}. Correct `module_files` of {program.name}."
            )
        for path in found:
            shutil.copyfile(path, scratch / path.name)
    shutil.rmtree(folder, ignore_errors=True)
    scratch.rename(folder)


def _go_environment() -> dict[str, str]:
    # GOFLAGS and GOWORK of a developer's own projects would change what is built.
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
