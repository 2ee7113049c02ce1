"""One attempt to launch, as every kind of trace is reduced to it."""

from typing import NamedTuple


class Attempt(NamedTuple):
    """Somebody asked for a server. Whether a pod comes of it, admission decides."""

    # Its place in the trace, from 0; all chance that belongs to the launch is drawn by it.
    number: int
    # Seconds since 1970, UTC; spread within its resolution already.
    moment: float
    # What it is told apart by for quotas and homes: lower-cased where the provider ignores case.
    repository: str
    # What its image is told apart by: repository as typed, and ref or commit.
    image: str
    # Bytes on disk; None: not known, so it is drawn.
    image_bytes: int | None = None
    # How long it ran once it was ready; None: not known, so it is drawn.
    session_seconds: float | None = None
    # What the pod asks for; None: as the assumptions say.
    cpu_millicores: int | None = None
    memory_bytes: int | None = None
    # The namespace of the hub that it was asked of; "": not known. Hubs share the nodes.
    hub: str = ""


def other_scheduler(hub: str) -> str:
    """The scheduler that pods of a hub without Roost name; kube-scheduler's own where no profile
    has that name.
    """
    return f"{hub}-user-scheduler"
