"""Everything about the world that no trace and no values file says; each a parameter, each with its source.

Sources: [S] published figures of mybinder.org, GKE, kubelet and containerd; [A] an assumption, to be varied.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from roost_core.scheduler.plugins import NEWEST_MINOR, OLDEST_MINOR


class SessionModel(NamedTuple):
    """Minutes from ready to gone: a least time (the culler's) and a log-normal rest."""

    least_minutes: float
    median_rest_minutes: float
    sigma: float


# [A] mean, median, p90 in minutes: 22, 20, 30; 36, 26, 62; 64, 46, 118.
SESSIONS: Final = {
    "short": SessionModel(14.0, 6.0, 0.765),
    "mid": SessionModel(15.0, 11.0, 1.133),
    "long": SessionModel(19.0, 27.0, 1.0138),
}


class PullModel(NamedTuple):
    """Bytes per second, compressed: over the network for one node, and unpacking, one layer after the other."""

    fetch: float
    unpack: float


# [A]
PULLS: Final = {
    "fast": PullModel(200e6, 85e6),
    "middle": PullModel(60e6, 25e6),
    "slow": PullModel(10e6, 10e6),
}


# Minors of Kubernetes whose kube-scheduler the model knows.
KUBERNETES_MINORS: Final = tuple(f"1.{minor}" for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1))


class Autoscaler(StrEnum):
    """Whose rules add and remove nodes."""

    CLUSTER_AUTOSCALER = "cluster-autoscaler"
    KARPENTER = "karpenter"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """One world. The defaults are mybinder.org's in May 2019, with sessions of the middle length."""

    # The cluster's minor of Kubernetes, 1.35, 1.36 or 1.37: values are rendered for it, and pods are placed as its
    # kube-scheduler does [A: the newest that the chart has an image for].
    kubernetes_minor: str = KUBERNETES_MINORS[-1]
    # A key of SESSIONS [A].
    sessions: str = "mid"
    # Between looks of the hub's culler, which ends servers that are idle: a session of drawn length ends at the first
    # look after its end. 0: servers stop by themselves, as on mybinder.org [S: zero-to-jupyterhub's 600].
    cull_every_seconds: float = 0.0
    # A key of PULLS [A].
    pulls: str = "middle"
    # Running servers of one repository, and of all; 0: no quota [S: 100 in May 2019].
    quota_per_repository: int = 100
    quota_total: int = 0
    # What a user's pod asks for [S: 0.01 CPU; 550 MB make 66 a node].
    user_cpu_millicores: int = 10
    user_memory_bytes: int = 550_000_000
    # Of one node [S: n1-highmem-8]; memory so that 66 users fit beside its daemons [S].
    node_cpu_millicores: int = 7910
    node_memory_bytes: int = 36_500_000_000
    node_pods: int = 110
    # Of the image filesystem; 0: endless [S: 1 TB].
    node_disk_bytes: int = 10**12
    # Of the pool of user nodes [A].
    min_nodes: int = 1
    max_nodes: int = 100
    # Whose rules add and remove nodes: cluster-autoscaler, karpenter or none [S].
    autoscaler: Autoscaler = Autoscaler.CLUSTER_AUTOSCALER
    # Hours after its joining at which a node is drained: it takes no more users, its placeholders go elsewhere at once,
    # and it goes when its last user has left. 0: never [S: Karpenter's expireAfter, 720 as usual; stands for upgrades
    # of nodes, too].
    node_expire_hours: float = 0.0
    # From request to Ready: median and sigma of a log-normal [A, S: 3 to 4 minutes on GCE].
    boot_median_seconds: float = 210.0
    boot_sigma: float = 0.25
    # Cluster Autoscaler [S: its FAQ].
    autoscaler_loop_seconds: float = 10.0
    unneeded_seconds: float = 600.0
    after_scale_up_seconds: float = 600.0
    unneeded_utilisation: float = 0.5
    give_up_boot_seconds: float = 900.0
    # Karpenter [S]: consolidateAfter.
    consolidate_after_seconds: float = 30.0
    # Images: on-disk size log-normal; compressed is smaller by the ratio; a share of the median is in base layers that
    # many images have [A].
    image_median_bytes: float = 1.6e9
    image_sigma: float = 0.5
    compression_ratio: float = 2.8
    shared_share: float = 0.4
    # Families of base layers: images of one family share them [A].
    base_families: int = 4
    # Of active repositories, pushed to a day: each push makes a new image [A: 0, 0.02 or 0.1].
    pushes_per_day: float = 0.0
    # Kubelet [S]: one pull after the other; collection above, down to, every.
    parallel_pulls: int = 1
    gc_high: float = 0.85
    gc_low: float = 0.80
    gc_period_seconds: float = 300.0
    gc_min_age_seconds: float = 120.0
    # Entries of node.status.images, largest first; -1: all [S: 50], and how late they show [S: 10 s].
    status_images: int = 50
    status_delay_seconds: float = 10.0
    # From decision to container running without a pull [S: 0.25 + 1.1 s], and one second more when pulled.
    bind_seconds: float = 0.25
    start_seconds: float = 1.1
    pull_overhead_seconds: float = 1.0
    # The spawner's patience, and how often a launch is tried again [S: 300 s; A: once].
    start_timeout_seconds: float = 300.0
    retries: int = 1
    # kube-scheduler's first and greatest back-off of a pod that fits nowhere, once something changed. It is set to 1
    # and 10 s, but with nothing else to do it takes pods out of their back-off at once [S: SchedulerPopFromBackoffQ,
    # 1.33].
    backoff_seconds: float = 0.001
    max_backoff_seconds: float = 10.0
    # Until a pre-empted placeholder has gone [A].
    preempted_gone_seconds: float = 1.0
    # Builds [A]: minutes cold, and seconds on the node that built the repository last; half change the environment.
    build_cold_median_seconds: float = 240.0
    build_cold_p90_seconds: float = 900.0
    build_warm_median_seconds: float = 40.0
    build_changed_share: float = 0.5
    # Builds are simulated; off where only users count.
    with_builds: bool = False
    # Repositories whose build layers one node keeps; 0: endless.
    build_cache_repositories: int = 0

    @property
    def minor(self) -> int:
        """`kubernetes_minor` as a number: 36 for 1.36."""
        return int(self.kubernetes_minor.partition(".")[2])
