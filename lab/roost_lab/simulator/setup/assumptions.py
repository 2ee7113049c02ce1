"""Everything about the world that neither the trace nor the values say; each a parameter with its
source.

Sources: [S] published figures of mybinder.org, GKE, kubelet and containerd; [A] an assumption, to
be varied.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from roost_core.scheduler.plugins import NEWEST_MINOR, OLDEST_MINOR

# Minutes from ready to gone: a least time (the culler's), and median and sigma of a log-normal that
# comes on top. [A] Mean, median, p90 in minutes: 22, 20, 30; 36, 26, 62; 64, 46, 118.
SESSIONS: Final = {
    "short": (14.0, 6.0, 0.765),
    "mid": (15.0, 11.0, 1.133),
    "long": (19.0, 27.0, 1.0138),
}
# [A] Compressed bytes per second of one node: over the network, and when unpacking, one layer after
# the other. The slowest is what a person of mybinder.org told of one of its nodes [S:
# mybinder.org-deploy #3056].
PULLS: Final = {
    "fast": (200e6, 85e6),
    "middle": (60e6, 25e6),
    "slow": (10e6, 10e6),
    "slowest": (6e6, 6e6),
}
# Minors of Kubernetes whose kube-scheduler the model knows.
KUBERNETES_MINORS: Final = tuple(f"1.{minor}" for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1))


class Autoscaler(StrEnum):
    """What adds and removes nodes."""

    CLUSTER_AUTOSCALER = "cluster-autoscaler"
    KARPENTER = "karpenter"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """One world. The defaults are mybinder.org's in May 2019, with sessions of the middle
    length.
    """

    # The cluster's Kubernetes, 1.33 to 1.37 [A: the newest that the chart has an image for].
    kubernetes_minor: str = KUBERNETES_MINORS[-1]
    # How long servers run: short, mid or long [A].
    sessions: str = "mid"
    # Seconds between two runs of the hub's culler; a session of drawn length ends at the next run.
    # 0: no culler, as on mybinder.org [S: zero-to-jupyterhub has 600].
    cull_every_seconds: float = 0.0
    # Seconds without activity after which that culler ends a server. Lengths change by the
    # difference to `sessions_cull_timeout_seconds`. 0: lengths stay [S: zero-to-jupyterhub has
    # cull.timeout: 3600].
    cull_timeout_seconds: float = 0.0
    # Age at which that culler ends a server, in use or not. 0: never [S: zero-to-jupyterhub has
    # cull.maxAge: 0].
    cull_max_age_seconds: float = 0.0
    # The timeout of the culler that lengths contain: mybinder.org's in drawn lengths [S: 600], the
    # hub's in a trace's. A shorter session wasn't culled, and stays.
    sessions_cull_timeout_seconds: float = 600.0
    # Seconds between two runs of the culler that a trace's lengths contain [S: zero-to-jupyterhub
    # has cull.every: 600].
    sessions_cull_every_seconds: float = 0.0
    # Share of people who stop their server themselves: counts with `cull_timeout_seconds` [A].
    stopped_share: float = 0.0
    # How fast nodes pull images: fast, middle, slow or slowest [A].
    pulls: str = "middle"
    # The most running servers of one repository; 0: no quota [S: 100 in May 2019].
    quota_per_repository: int = 100
    # The most servers of a hub; others are refused. 0: no limit [S: JupyterHub's
    # activeServerLimit].
    active_server_limit: int = 0
    # The most servers that start at once, of all hubs; others are told to come again, and do so
    # after 30 to 60 s. 0: no limit [S: zero-to-jupyterhub has hub.concurrentSpawnLimit: 64].
    concurrent_spawn_limit: int = 0
    # CPU that a user's pod requests [S].
    user_cpu_millicores: int = 10
    # Memory that a user's pod requests [S: 66 users fit a node].
    user_memory_bytes: int = 550_000_000
    # Allocatable CPU of a node [S: n1-highmem-8].
    node_cpu_millicores: int = 7910
    # Allocatable memory of a node, less what its daemons request [S: n1-highmem-8].
    node_memory_bytes: int = 36_500_000_000
    # The most pods on a node [S].
    node_pods: int = 110
    # Size of a node's image filesystem; 0: endless [S: 1 TB].
    node_disk_bytes: int = 10**12
    # The fewest nodes of the pool [A].
    min_nodes: int = 1
    # The most nodes of the pool [A].
    max_nodes: int = 100
    # What adds and removes nodes: cluster-autoscaler, karpenter or none [S].
    autoscaler: Autoscaler = Autoscaler.CLUSTER_AUTOSCALER
    # Seconds from the request of a node until it is Ready, median of a log-normal [A, S: 3 to 4
    # minutes on GCE].
    boot_median_seconds: float = 210.0
    # Sigma of that log-normal [A].
    boot_sigma: float = 0.25
    # Seconds between two loops of Cluster Autoscaler, --scan-interval [S: its FAQ].
    autoscaler_loop_seconds: float = 10.0
    # Seconds for which a node must be unneeded before it is removed, --scale-down-unneeded-time [S:
    # its FAQ].
    unneeded_seconds: float = 600.0
    # Seconds after a scale-up without scale-down, --scale-down-delay-after-add [S: its FAQ].
    after_scale_up_seconds: float = 600.0
    # Share of a node's requests below which it may be unneeded, --scale-down-utilization-threshold
    # [S: its FAQ].
    unneeded_utilisation: float = 0.5
    # Seconds after which a requested node is given up, --max-node-provision-time [S: its FAQ].
    give_up_boot_seconds: float = 900.0
    # Karpenter's consolidateAfter [S].
    consolidate_after_seconds: float = 30.0
    # Size of an image on disk, median of a log-normal [A].
    image_median_bytes: float = 1.6e9
    # Sigma of that log-normal [A].
    image_sigma: float = 0.5
    # Size on disk divided by compressed size [A].
    compression_ratio: float = 2.8
    # Share of the median image that is in base layers, which many images have in common [S:
    # buildpack-deps:bionic, 221 MB compressed, on which repo2docker builds].
    shared_share: float = 0.4
    # Families of base layers: images of one family share them [A].
    base_families: int = 4
    # Share of the rest of an image that a push leaves alone: the packages, where a push doesn't
    # change them. Counts where images have one name and several tags [A].
    environment_share: float = 0.9
    # Probability that an active repository is pushed to on a day, which makes a new image [A: 0,
    # 0.02 or 0.1].
    pushes_per_day: float = 0.0
    # Images that a kubelet pulls at once [S].
    parallel_pulls: int = 1
    # Share of the disk above which a kubelet removes images, imageGCHighThresholdPercent [S].
    gc_high: float = 0.85
    # Share of the disk down to which it removes them, imageGCLowThresholdPercent [S].
    gc_low: float = 0.80
    # Seconds between two of its checks [S].
    gc_period_seconds: float = 300.0
    # Age below which an image isn't removed, imageMinimumGCAge [S].
    gc_min_age_seconds: float = 120.0
    # Seconds after which an image that nobody used is removed, imageMaximumGCAge. 0: never [S].
    gc_max_age_seconds: float = 0.0
    # The most entries of node.status.images, the largest first; -1: all, nodeStatusMaxImages [S].
    status_images: int = 50
    # Seconds until an image shows in node.status.images [S].
    status_delay_seconds: float = 10.0
    # Hours between two restarts of the webhook, which then knows only the images that pods and
    # nodes show. 0: never [A].
    webhook_restart_hours: float = 0.0
    # Seconds from the scheduler's decision until the kubelet has the pod; start_seconds has their
    # sum's source [A].
    bind_seconds: float = 0.25
    # Seconds from then until the container runs, without a pull [S: 1.37 s with bind_seconds, the
    # median of 89 pods of scheduler-sniffer's run on GKE].
    start_seconds: float = 1.1
    # Seconds from its container's start until a server answers, median of a log-normal [S: 0.7 for
    # a light one, 2.2 for JupyterLab with a core to itself].
    answer_seconds: float = 0.0
    # Sigma of that log-normal; 0: all take as long [A].
    answer_sigma: float = 0.0
    # Seconds that a pull takes in addition to fetching and unpacking [S].
    pull_overhead_seconds: float = 1.0
    # Seconds after which the spawner gives a start up [S].
    start_timeout_seconds: float = 300.0
    # How often a launch is tried again [A].
    retries: int = 1
    # kube-scheduler's first back-off of a pod that fits nowhere. Its setting is 1 s, but a
    # scheduler with nothing else to do takes pods out at once [S: SchedulerPopFromBackoffQ, 1.33].
    backoff_seconds: float = 0.001
    # kube-scheduler's greatest back-off [S].
    max_backoff_seconds: float = 10.0
    # Seconds until a pre-empted placeholder is gone [A].
    preempted_gone_seconds: float = 1.0
    # Seconds of a build without a cache, median of a log-normal [A].
    build_cold_median_seconds: float = 240.0
    # The 90th percentile of that log-normal [A].
    build_cold_p90_seconds: float = 900.0
    # Seconds of a build on the node that built the repository last, median [A].
    build_warm_median_seconds: float = 40.0
    # Share of builds, and of pushes, that change the environment: they are cold everywhere [A].
    build_changed_share: float = 0.5
    # Whether builds are simulated; off where only users count.
    with_builds: bool = False

    @property
    def waits_end(self) -> str:
        """When, in words."""
        return "servers answer" if self.answer_seconds else "containers run"

    @property
    def minor(self) -> int:
        """`kubernetes_minor` as a number: 36 for 1.36."""
        return int(self.kubernetes_minor.partition(".")[2])
