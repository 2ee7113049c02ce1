"""The steps of a pod's start with their spans."""

from __future__ import annotations

from dataclasses import dataclass

from roost_lab.recorder.answers.pod_story import PodStory
from roost_lab.recorder.store.records import Phase, PodSource


@dataclass(frozen=True, slots=True)
class StartStep:
    """One step of a start."""

    # A stable word: gates, node, kubelet, pull-queue, pull, init, containers, ready.
    name: str
    # The gate's, image's or container's name; "" for the whole pod.
    detail: str
    from_us: int
    # None: it goes on, until when the record is known to be complete.
    to_us: int | None


def steps_of(story: PodStory) -> list[StartStep]:
    """The steps in order of time. Those that took no time by the clocks' resolution are there, too."""
    pod = story.pod
    scheduled_us, gone_us, ungated_us = story.scheduled_us, story.gone_us, story.at(Phase.UNGATED)
    steps = []
    since_us: int | None = story.created_us
    if story.gates and (ungated_us is not None or scheduled_us is None):
        steps.append(StartStep("gates", "", story.created_us, ungated_us or gone_us))
        since_us = ungated_us
    if since_us is not None:
        steps.append(StartStep("node", "", since_us, scheduled_us if scheduled_us is not None else gone_us))
    for row in story.pulls:
        if not row["warm"] and row["pull_and_wait_us"]:
            pulling_us = row["at_us"] - (row["pull_us"] or row["pull_and_wait_us"])
            if row["pull_us"] is not None and row["pull_and_wait_us"] > row["pull_us"]:
                steps.append(StartStep("pull-queue", row["image"], row["at_us"] - row["pull_and_wait_us"], pulling_us))
            steps.append(StartStep("pull", row["image"], pulling_us, row["at_us"]))
    # Events alone tell neither when init containers were done nor when it was ready.
    is_watched = pod["source"] != PodSource.EVENT
    accepted_us, initialized_us = story.at(Phase.ACCEPTED), story.at(Phase.INITIALIZED)
    started_us, ready_us = story.at(Phase.STARTED), story.at(Phase.READY)
    for name, from_us, to_us in (
        ("kubelet", scheduled_us, accepted_us),
        ("init", accepted_us, initialized_us),
        ("containers", initialized_us if is_watched else scheduled_us, started_us),
        ("ready", started_us, ready_us),
    ):
        if from_us is not None and to_us is not None:
            # In whole seconds a step may seem to come before the one that it follows.
            steps.append(StartStep(name, "", story.pulled_us(from_us, to_us), max(from_us, to_us)))
    steps += [StartStep("pull", row["detail"], row["at_us"], None) for row in story.pulling]
    if scheduled_us is not None and ready_us is None and (is_watched or started_us is None):
        reached = [at_us for at_us in (scheduled_us, accepted_us, initialized_us, started_us) if at_us is not None]
        steps.append(StartStep("ready" if started_us else "containers", "", max(reached), gone_us))
    return sorted(steps, key=lambda step: (step.from_us, step.to_us or step.from_us))
