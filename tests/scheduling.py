"""Ask the scheduler's model for verdicts and scores alone, without a whole cycle."""

from collections.abc import Iterable

from roost_core.objects.pod import Pod
from roost_core.scheduler.filters import NOT_NAMED, Cycle
from roost_core.scheduler.profile import Profile
from roost_core.scheduler.rejections import Rejection
from roost_core.scheduler.scores import Chosen, ScoreTable, score_chosen
from roost_core.scheduler.state import ClusterState


def filter_nodes(pod: Pod, state: ClusterState, profile: Profile) -> dict[str, Rejection | None]:
    """For every node, in kube-scheduler's order: None if the pod fits there beside nominated pods,
    else why not.
    """
    cycle = Cycle(pod, state, profile)
    if cycle.refusal is not None:
        refused = Rejection((cycle.refusal,), True)
        return {row.name: refused for row in state.ordered}
    named = cycle.named_nodes
    return {
        row.name: NOT_NAMED if named is not None and row.name not in named else verdict
        for row, verdict in cycle.check_all(state.ordered)
    }


def score_nodes(
    pod: Pod, feasible: Iterable[str], state: ClusterState, profile: Profile
) -> ScoreTable:
    places = state.places
    return score_chosen(
        Chosen(state, [places[name] for name in feasible]), Cycle(pod, state, profile)
    )
