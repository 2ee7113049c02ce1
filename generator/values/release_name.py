"""A release's name, namespace and cluster version: their defaults, and which are refused."""

import re
from typing import Final, NamedTuple

from generator.faults import UsageError
from roost_core.scheduler.plugins import NEWEST_MINOR, OLDEST_MINOR

# Helm's own defaults for `helm template`.
DEFAULT_NAME: Final = "release-name"
DEFAULT_NAMESPACE: Final = "default"
# The newest minor that Roost is tested with.
DEFAULT_KUBE_VERSION: Final = f"v1.{NEWEST_MINOR}.0"

# `kubeVersion` of chart/Chart.yaml, which Helm enforces. A test holds the two together.
OLDEST_KUBE_MINOR: Final = (1, OLDEST_MINOR)

# Helm's bound: names of objects are made from it.
_LONGEST_NAME: Final = 53
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NAMESPACE: Final = re.compile(_LABEL)
_MINOR: Final = re.compile(r"v?(\d+)\.(\d+)")
_VERSION: Final = re.compile(
    r"v?([1-9][0-9]{0,2})\.([0-9]{1,3})(?:\.[0-9]{1,5})?(?:[-+][0-9A-Za-z.+-]*)?"
)


class Release(NamedTuple):
    """One install of Roost. `kube_version`: the cluster's, for example v1.37.2."""

    name: str = DEFAULT_NAME
    namespace: str = DEFAULT_NAMESPACE
    kube_version: str = DEFAULT_KUBE_VERSION

    @property
    def kube_minor(self) -> tuple[int, int]:
        """(1, 37) for v1.37.2."""
        return kube_minor(self.kube_version)


def kube_minor(version: str) -> tuple[int, int]:
    """Read major and minor of `v1.36.3`, `1.36` or `v1.36.1-gke.200`. Raises ValueError."""
    match = _MINOR.match(version)
    if match is None:
        raise ValueError(f"{version!r} is not a Kubernetes version: write it like v1.36.3")
    return int(match[1]), int(match[2])


def check_release(release: Release) -> None:
    """Raise UsageError for names and versions that Helm or Kubernetes refuse."""
    if len(release.name) > _LONGEST_NAME or not _NAME.fullmatch(release.name):
        raise UsageError(
            f"--release {release.name!r}: is not a valid release name. "
            f"Use at most {_LONGEST_NAME} lower-case letters, digits, dashes and dots."
        )
    if len(release.namespace) > 63 or not _NAMESPACE.fullmatch(release.namespace):
        raise UsageError(
            f"--namespace {release.namespace!r}: is not a valid namespace. "
            "Use at most 63 lower-case letters, digits and dashes."
        )
    if not _VERSION.fullmatch(release.kube_version):
        raise UsageError(
            f"--kube-version {release.kube_version!r}: is not a Kubernetes version. Write it like"
            " v1.37.2 or 1.37."
        )
    if release.kube_minor < OLDEST_KUBE_MINOR:
        oldest = ".".join(map(str, OLDEST_KUBE_MINOR))
        raise UsageError(
            f"--kube-version {release.kube_version!r}: is too old, expected {oldest} or newer. "
            "Give the version that the cluster has; older clusters can't run Roost."
        )
