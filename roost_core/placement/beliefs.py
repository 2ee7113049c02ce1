"""What Roost believes of the cluster: how old the evidence may be, and what Roost does then.

docs/beliefs.md says what the evidence is; the names are its first column. Ages are measured by a
monotonic clock, from when the evidence was seen.
"""

import math
from typing import Final, NamedTuple


class Belief(NamedTuple):
    """One belief.

    `then`: what Roost does when the evidence is older, in the words of the table. If logs and
    metrics have a word for it, `then` is that word, which the table has in backticks.
    """

    name: str
    # The oldest evidence that counts. Infinity: until other evidence ends the belief, or for as
    # long as the values say.
    age_seconds: float
    then: str


# A Lease is stale if it wasn't renewed for this many of its durations. After the first, another
# replica may take over. After the second, no replica has.
STALE_DURATIONS: Final = 2
# Kubernetes' default, for a Lease without leaseDurationSeconds.
LEASE_SECONDS: Final = 15
# Between two reads of a Lease.
LOOK_SECONDS: Final = 2.0
# The server sends a bookmark a minute; a watch that misses several may miss anything.
WATCHED_SECONDS: Final = 300.0
_STALE_SECONDS: Final = float(STALE_DURATIONS * LEASE_SECONDS)

NODES: Final = Belief(
    "which nodes there are, their labels and size", WATCHED_SECONDS, "nodes-unknown"
)
HELD: Final = Belief("a node holds an image", math.inf, "the node counts as one that pulls")
# A node that holds a pod's images starts the pod within some seconds. A pod that ended sooner says
# nothing about the pull.
WAITED_SECONDS: Final = 20.0
FAILED_PULL: Final = Belief("a node can't pull an image", 300.0, "the node may be preferred again")
LABELS_KEPT: Final = Belief("node labels are kept true", _STALE_SECONDS, "controllers-stale")
SCHEDULER_WORKS: Final = Belief("Roost's scheduler works", _STALE_SECONDS, "stale")
SERVED: Final = Belief("the scheduler has the profiles of the values", LOOK_SECONDS, "outdated")
PRIORITIES: Final = Belief("which priorities pods can have", WATCHED_SECONDS, "may-preempt")
CLAIMABLE: Final = Belief(
    "which resources nodes have and don't list", WATCHED_SECONDS, "no-holder-fits"
)
QUOTAS: Final = Belief(
    "no quota refuses what is added to a pod", WATCHED_SECONDS, "no affinity names other namespaces"
)
PODS: Final = Belief(
    "which pods of a class there are, and where", WATCHED_SECONDS, "no node is preferred"
)
BUILDERS: Final = Belief("which nodes have a builder", WATCHED_SECONDS, "all nodes are candidates")
NAMESPACES: Final = Belief(
    "labels of namespaces", WATCHED_SECONDS, "pods of classes that select by them stay as they are"
)
EARLIER: Final = Belief(
    "what was known by earlier values", _STALE_SECONDS, "what isn't listed by then is unknown"
)

WEBHOOK: Final = (
    NODES,
    HELD,
    FAILED_PULL,
    LABELS_KEPT,
    SCHEDULER_WORKS,
    SERVED,
    PRIORITIES,
    CLAIMABLE,
    QUOTAS,
    PODS,
    BUILDERS,
    NAMESPACES,
    EARLIER,
)

SNAPSHOT: Final = Belief("the snapshot of the cluster", 180.0, "nothing is planned")
LEADS: Final = Belief("this replica leads", float(LEASE_SECONDS), "nothing is written")
# The DaemonSet controller creates a new node's pod within two seconds, and the pod is bound at
# once. If a node has no puller's pod after this time, no pod will come.
COMING: Final = Belief("a node is about to get an image", 30.0, "the node is opened")
WAITS: Final = Belief("a user waits for the gate alone", math.inf, "a node is opened")
# kubelet's nodeStatusReportFrequency (5 min), plus the 30 s for which it caches its runtime's
# answer.
LIST_LAGS: Final = Belief(
    "a node holds an image that its list lacks", 330.0, "the image counts as gone"
)
# The list may be cut, or may have the image by another name.
LIST_SILENT: Final = Belief(
    "the same, where the list says nothing", math.inf, "the image counts as gone"
)
# Nodes become Ready some seconds after they registered. A node that isn't Ready after this time may
# never be.
STARTING: Final = Belief("a node that isn't Ready is starting", 120.0, "it isn't opened")
# A node reports devices only after its device plugin started. Often that is after it is Ready, and
# some minutes after if a driver is installed first. Until then Karpenter counts on the devices, so
# the image gate must, too.
DEVICES: Final = Belief("a Ready node may yet report its devices", 300.0, "it isn't opened")
MOVED: Final = Belief("where an evicted placeholder would go", math.inf, "the set pauses")
BOOKED: Final = Belief("what is booked", math.inf, "it stays")
LEARNED: Final = Belief("how many people come, as learned", math.inf, "the values' number")
POPULAR: Final = Belief("which images are popular", math.inf, "it comes to no more nodes")

CONTROLLERS: Final = (
    SNAPSHOT,
    LEADS,
    COMING,
    WAITS,
    LIST_LAGS,
    LIST_SILENT,
    STARTING,
    DEVICES,
    MOVED,
    BOOKED,
    LEARNED,
    POPULAR,
)
