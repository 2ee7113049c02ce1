"""Explain one pod's start in plain sentences: where it went, which other nodes there were, what it
waited for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final

from roost_core.placement.hold_ups import short_cause
from roost_core.placement.labels import USER_CLASS
from roost_lab.pages.phrases import (
    plural,
    show_bytes,
    show_plain,
    show_span,
    show_span_range,
    show_time,
)
from roost_lab.recorder.answers.after_binding import LEAST_US, AfterBinding, Wait
from roost_lab.recorder.answers.deciding_rule import deciding_rule, decisive_plugin
from roost_lab.recorder.answers.pod_story import PodStory, Row, spellings
from roost_lab.recorder.answers.waiting import advise, node_lines, rules
from roost_lab.recorder.store.records import DecisionKind, Phase, PodSource, Verdict
from roost_lab.units import US

MAX_CANDIDATES: Final = 6
MAX_FAILURES: Final = 3
# A step of which so much isn't explained is worth a question.
WORTH_ASKING_US: Final = 10 * US


def explain(story: PodStory) -> str:
    """The explanation, one or more lines for each part, parts separated by an empty line."""
    parts = (
        _head(story),
        _where(story),
        _image(story),
        _alternatives(story),
        _while_waiting(story),
        _waits(story),
        _help(story),
        _end(story),
        _doubts(story),
    )
    # Names and messages are the cluster's: none may break a line or command the terminal.
    texts = ["\n".join(show_plain(line) for line in part) for part in parts]
    return "\n\n".join(text for text in texts if text) + "\n"


def _head(story: PodStory) -> Iterator[str]:
    pod = story.pod
    name = "/".join(part for part in (pod["namespace"], pod["name"]) if part)
    kind = f"a pod of class {pod['pod_class']}" if pod["pod_class"] else "a pod of no class"
    origin = []
    if pod["image"]:
        origin.append(f"image {pod['image']}")
    if pod["repo"]:
        origin.append(f"of {pod['repo']}")
    in_brackets = f" ({', '.join(origin)})" if origin else ""
    yield f"{name}: {kind}{in_brackets}"
    ready_us = story.at(Phase.READY)
    started_us = story.at(Phase.STARTED)
    failure = story.failure
    created = f"Created {show_time(pod['created_us'])}"
    answer = story.wait_us(Phase.ASKED, Phase.ANSWERED)
    if answer is None:
        answer = story.wait_us(Phase.CREATED, Phase.ANSWERED)
    is_seated = story.at(Phase.SEATED) is not None
    if answer is not None:
        asker = "seating" if is_seated else "its user"
        yield f"{created}; it answered {show_span_range(*answer)} after {asker} had asked for it."
    elif failure is not None:
        how = "it was gone before it had answered its hub"
        if failure is Phase.FAILED:
            how = "its hub gave the start up"
        yield (
            f"{created}; the start failed: {how} {_show_wait(story, Phase.CREATED, failure)} later."
        )
    elif ready_us is None and pod["source"] == PodSource.EVENT:
        ran = ""
        if started_us:
            ran = f", its containers ran {show_span(started_us - pod['created_us'])} later"
        yield f"First Event {show_time(pod['created_us'])}{ran}."
    elif ready_us is not None:
        # All three times are in whole seconds.
        span_us = ready_us - pod["created_us"]
        is_probed = ready_us - (started_us or ready_us) > US
        is_user = pod["pod_class"] == USER_CLASS
        reached = "its containers ran" if is_user and not is_probed else "ready"
        later = f"{show_span(span_us)} later" if span_us >= US else "within the same second"
        yield f"{created}, {reached} {later}."
    elif pod["deleted_us"]:
        yield f"{created}; it never became ready."
    else:
        until = ""
        if story.heard_us is not None:
            until = f" at {show_time(story.heard_us)}, the last news recorded"
        yield f"{created}; not ready yet{until}."
    if is_seated:
        yield _seated(story)


def _seated(story: PodStory) -> str:
    """What became of a server that seating asked for."""
    opened_us = story.at(Phase.OPENED)
    unused_us = story.at(Phase.UNUSED)
    begin = "Seating asked for it before a class: nobody waited for it."
    if opened_us is not None:
        return f"{begin} Its user came {show_time(opened_us)}."
    if unused_us is not None:
        return f"{begin} Nobody used it: seating stopped it {show_time(unused_us)}."
    if story.failure is not None:
        # Its start failed, so nobody could come.
        return begin
    return f"{begin} Whether its user came isn't recorded."


def _where(story: PodStory) -> Iterator[str]:
    bind = story.bind
    if bind is None:
        yield "Where it went: nowhere; no scheduler has bound it."
    else:
        after = _show_wait(story, Phase.CREATED, Phase.SCHEDULED)
        by = f" by {bind['scheduler']}" if bind["scheduler"] else ""
        yield f"Where it went: node {bind['node_name']}, bound{by} {after} after its creation."
        chosen = story.chosen
        if chosen is not None:
            image = "already had the image" if chosen["has_image"] else "did not have the image yet"
            yield (
                f"  The node then ran {plural(chosen['users'], 'user')},"
                f" {plural(chosen['placeholders'], 'placeholder')} and"
                f" {plural(chosen['builds'], 'build')}; it {image}."
            )
        yield from _node_lines(story, bind)
        yield from (f"  {sentence}" for sentence in deciding_rule(story))
        if bind["nodes_feasible"] == 1 and bind["model"] == Verdict.AGREES:
            yield "  No other node was feasible."
        elif bind["model"] == Verdict.AGREES:
            note = f" ({bind['model_note']})" if bind["model_note"] else ""
            yield f"  The scheduler's model agrees{note}."
        elif bind["model"] == Verdict.DIFFERS:
            yield f"  The scheduler's model differs: {bind['model_note']}."
    for row in story.of_kind(DecisionKind.NOMINATE):
        yield f"  Room was made for it on {row['node_name']} at {show_time(row['at_us'])}."
    for row in story.victims:
        victim = f"{row['namespace']}/{row['name']}" if row["name"] else "a pod of lower priority"
        yield f"  Pre-empted for it on {row['node_name'] or 'its node'}: {victim}."


def _node_lines(story: PodStory, bind: Row) -> Iterator[str]:
    node = story.node
    if node is None or not 0 < node["created_us"] <= bind["at_us"]:
        return
    filled_us = node["images_ready_us"]
    images = ""
    if filled_us is not None:
        span = show_span(abs(bind["at_us"] - filled_us))
        order = "earlier" if filled_us <= bind["at_us"] else "later"
        images = f", and had all images of the hub {span} {order}"
    age_us = bind["at_us"] - node["created_us"]
    age = show_span_range(max(0, age_us - US * (bind["resolution_us"] < US)), age_us)
    yield f"  The node had joined {age} earlier{images}."


def _image(story: PodStory) -> Iterator[str]:
    """Where the image was, if the pod's own node lacked it."""
    bind = story.bind
    image = story.pod["image"]
    if not image or not story.nodes or any(row["warm"] for row in story.pulls):
        return
    if bind is not None and story.at(Phase.READY):
        needed_no_pull = not story.pulls or bind["node_name"] in story.holders
        if needed_no_pull:
            return
    nodes = plural(len(story.nodes), "node")
    if story.holders:
        named = ", ".join(story.holders[:MAX_CANDIDATES])
        hidden = len(story.holders) - MAX_CANDIDATES
        more = f" and {hidden} more" if hidden > 0 else ""
        yield f"Where its image was: on {named}{more} ({len(story.holders)} of {nodes})."
    else:
        yield f"Where its image was: on none of {nodes}, as far as they report their images."
    earlier = story.earlier_pulls
    if earlier is not None:
        pulls = plural(earlier["count"], "pull")
        yield (
            f"  Its {pulls} of the week before took {show_span(earlier['median_us'])} (median;"
            f" {show_span(earlier['min_us'])} to {show_span(earlier['max_us'])})."
        )


def _while_waiting(story: PodStory) -> Iterator[str]:
    if not story.is_waiting:
        return
    yield from node_lines(story)
    sentences = rules(story)
    if sentences:
        yield "Roost's part in it:"
        yield from (f"  {sentence}" for sentence in sentences)


def _help(story: PodStory) -> Iterator[str]:
    advice = advise(story) if story.is_waiting else ()
    if advice:
        yield "What would help:" if story.pod["deleted_us"] is None else "What would have helped:"
        yield from (f"  {text}" for _, text in advice)


def _alternatives(story: PodStory) -> Iterator[str]:
    bind = story.bind
    chosen = story.chosen
    others = story.others
    if not others or bind is None:
        return
    feasible = ""
    if bind["nodes_feasible"] is not None and bind["nodes_total"] is not None:
        feasible = f" ({bind['nodes_feasible']} of {bind['nodes_total']} nodes were feasible)"
    yield f"Other nodes{feasible}:"
    for row in others[:MAX_CANDIDATES]:
        memory = show_bytes(row["free_memory_bytes"])
        room = f"{row['free_cpu_millicores'] / 1000:g} CPU and {memory} free"
        image = "has the image" if row["has_image"] else "lacks the image"
        verdict = f"rejected: {row['refused']}" if row["refused"] else _compare(chosen, row)
        yield f"  {row['node_name']}: {plural(row['users'], 'user')}, {room}, {image}; {verdict}"
    if len(others) > MAX_CANDIDATES:
        yield f"  and {len(others) - MAX_CANDIDATES} more."


def _compare(chosen: Row | None, other: Row) -> str:
    if chosen is None or chosen["score_total"] is None or other["score_total"] is None:
        return "feasible"
    behind = chosen["score_total"] - other["score_total"]
    if behind == 0:
        return "same score"
    lower = "lower" if behind > 0 else "higher"
    return f"{lower} score, mostly by {decisive_plugin(chosen, other)}"


def _waits(story: PodStory) -> Iterator[str]:
    yield "What it waited for:"
    asked = story.wait_us(Phase.ASKED, Phase.CREATED)
    if asked is not None and asked[1] >= US // 10:
        is_by_events = story.pod["source"] == PodSource.EVENT
        waited_for = "until its first Event" if is_by_events else "for its hub to create it"
        yield f"  {show_span_range(*asked)} {waited_for}"
    yield from _waits_for_a_node(story)
    after = story.after_binding
    waits = after.waits if after is not None else ()
    lines = [(wait.from_us, _after_binding(wait)) for wait in waits if wait.span_us >= LEAST_US]
    lines += [(row["at_us"], _pull(row)) for row in story.pulls]
    for _, line in sorted(lines, key=itemgetter(0)):
        yield f"  {line}"
    yield from _steps_after_binding(story, after)
    answer = story.wait_us(Phase.STARTED, Phase.ANSWERED)
    if answer is not None:
        yield f"  {show_span_range(*answer)} until it answered"
    for row in story.pulling:
        so_far = f", {show_span(story.heard_us - row['at_us'])} so far" if story.heard_us else ""
        earlier = story.earlier_pulls if row["detail"] in spellings(story.pod["image"]) else None
        last = f"; the last such pull took {show_span(earlier['last_us'])}" if earlier else ""
        where = f" to {story.bind['node_name']}" if story.bind else ""
        yield f"  Now: pulling {row['detail']}{where}{so_far}{last}"


def _waits_for_a_node(story: PodStory) -> Iterator[str]:
    """Its gates, then its schedulers' attempts."""
    scheduled_us = story.scheduled_us
    gone_us = story.gone_us
    gone = Phase.TERMINATING if story.at(Phase.TERMINATING) else Phase.GONE
    failures = story.of_kind(DecisionKind.FAIL)
    gates = _gates(story.gates)
    ungated_us = story.at(Phase.UNGATED)
    is_considered = scheduled_us is not None or ungated_us is not None or bool(failures)
    if gates and ungated_us is not None:
        yield f"  {_show_wait(story, Phase.CREATED, Phase.UNGATED)} for {gates} to be removed"
    elif gates and is_considered:
        yield f"  first for {gates} to be removed; when that was is not recorded"
    elif gates and gone_us is not None:
        yield (
            f"  {_show_wait(story, Phase.CREATED, gone)} for {gates} to be removed, without success"
        )
    elif gates:
        yield f"  {gates} to be removed: until then no scheduler considers it"
    since = Phase.UNGATED if gates and ungated_us is not None else Phase.CREATED
    if scheduled_us is not None:
        yield f"  {_show_wait(story, since, Phase.SCHEDULED)} for a node{_tries(failures)}"
    elif gates and not is_considered:
        pass
    elif gone_us is not None:
        yield f"  {_show_wait(story, since, gone)} for a node without success{_tries(failures)}"
    else:
        yield f"  a node{_tries(failures)}"
    yield from _some(
        [f"{show_time(row['at_us'])}: {_reasons(row)}" for row in failures], "failed attempts"
    )
    yield from _some([_autoscaler(row) for row in story.autoscaler], "messages of an autoscaler")


def _steps_after_binding(story: PodStory, after: AfterBinding | None) -> Iterator[str]:
    """The kubelet's steps, each without the pulls and waits that have lines of their own."""
    scheduled_us = story.scheduled_us
    accepted_us = story.at(Phase.ACCEPTED)
    initialized_us = story.at(Phase.INITIALIZED)
    started_us = story.at(Phase.STARTED)
    ready_us = story.at(Phase.READY)
    for step, from_us, to_us in (
        ("for the kubelet to accept it", scheduled_us, accepted_us),
        ("for init containers", accepted_us, initialized_us),
        ("for its containers to start", initialized_us, started_us),
        ("to become ready", started_us, ready_us),
    ):
        # A step in whole seconds may seem to come before the one that it follows.
        if from_us is None or to_us is None or to_us < from_us:
            continue
        # Pulls are told by themselves, and what failed.
        begin_us = story.pulled_us(from_us, to_us)
        known_us = after.explained_us(begin_us, to_us) if after is not None else 0
        span_us = to_us - begin_us - known_us
        is_unknown = to_us <= (started_us or 0) and span_us >= WORTH_ASKING_US
        if span_us >= US:
            why = ", for nothing that was recorded" if is_unknown else _probe_failed(story, to_us)
            yield f"  about {show_span(span_us)} {step}{why}"
    are_steps_known = accepted_us is not None or initialized_us is not None
    if after is not None and not (are_steps_known and after.is_over):
        yield from _rest(story, after)


def _after_binding(wait: Wait) -> str:
    so_far = " so far" if wait.goes_on else ""
    cause = f": {wait.cause}" if wait.cause else ""
    return f"{show_span(wait.span_us)}{so_far} for {wait.awaits}{cause}"


def _rest(story: PodStory, after: AfterBinding) -> Iterator[str]:
    """What nothing explains of a start that goes on, or whose steps aren't known."""
    is_under_way = not after.is_over and (story.pulling or story.heard_us is None)
    if after.unexplained_us >= US and not is_under_way:
        so_far = "" if after.is_over else " so far"
        yield (
            f"  {show_span(after.unexplained_us)}{so_far} after it was bound, for nothing that was"
            " recorded"
        )


def _probe_failed(story: PodStory, to_us: int) -> str:
    """What a probe said last before the pod was ready; "" for other steps."""
    failed = [row for row in story.events if row["reason"] == "Unhealthy" and row["at_us"] <= to_us]
    if not failed or to_us != story.at(Phase.READY):
        return ""
    return f": {short_cause(failed[-1]['message'])}"


def _show_wait(story: PodStory, begin: Phase, end: Phase) -> str:
    return show_span_range(*(story.wait_us(begin, end) or (0, 0)))


def _gates(names: Sequence[str]) -> str:
    if not names:
        return ""
    gates = "its scheduling gate" if len(names) == 1 else "its scheduling gates"
    named = ", ".join(name for name in names if name)
    return f"{gates} {named}" if named else gates


def _some(lines: Sequence[str], kind: str) -> Iterator[str]:
    """The first lines and the last one: how it began, and the current state. kind: of which lines
    some are hidden.
    """
    for line in lines[: MAX_FAILURES - 1]:
        yield f"    {line}"
    hidden = len(lines) - MAX_FAILURES
    if hidden > 0:
        yield f"    … {hidden} more {kind} …"
    for line in lines[MAX_FAILURES - 1 :][-1:]:
        yield f"    {line}"


def _autoscaler(row: Row) -> str:
    again = f" ({row['count']} times, last {show_time(row['last_us'])})" if row["count"] > 1 else ""
    return f"{show_time(row['at_us'])}: {row['reason']}: {row['message']}{again}"


def _tries(failures: Sequence[Row]) -> str:
    tries = sum(row["tries"] for row in failures)
    return f", after at least {plural(tries, 'failed attempt')}:" if tries else ""


def _reasons(row: Row) -> str:
    reasons = json.loads(row["reasons"])
    if not reasons:
        return row["message"] or "no reason given"
    most_first = sorted(reasons.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{count} {reason}" for reason, count in most_first)
    of_all = f"of {row['nodes_total']} nodes: " if row["nodes_total"] is not None else ""
    return f"{of_all}{listed}"


def _pull(row: Row) -> str:
    if row["warm"]:
        return f"no time for image {row['image']}: {row['node_name']} already had it"
    size = f", {show_bytes(row['image_bytes'])}" if row["image_bytes"] else ""
    total_us = row["pull_and_wait_us"] or 0
    queued_us = total_us - (row["pull_us"] or total_us)
    queue = f", {show_span(queued_us)} of it behind other pulls" if queued_us >= US // 10 else ""
    return (
        f"{show_span(total_us)} for image {row['image']} to be pulled to"
        f" {row['node_name']}{size}{queue}"
    )


def _end(story: PodStory) -> Iterator[str]:
    pod = story.pod
    if pod["deleted_us"] is None:
        return
    reasons = {
        "preempted": f"it was pre-empted for {_preemptor(story.preemptor)}",
        "evicted": "it was evicted",
        "finished": "it had finished",
        "failed": "it had failed",
        "node-gone": "its node was gone",
        "unseen": "the recorder did not see when, so this is the latest possible time",
        "deleted": "it was deleted",
    }
    why = reasons.get(pod["end_reason"], pod["end_reason"])
    gone = f"Gone {show_time(pod['deleted_us'])}"
    yield f"{gone}: {why}." if why else f"{gone}."


def _preemptor(row: Row | None) -> str:
    if row is None:
        return "a pod of higher priority"
    if not row["name"]:
        return f"a pod that isn't recorded (uid {row['uid']})"
    return f"{row['namespace']}/{row['name']}"


def _doubts(story: PodStory) -> Iterator[str]:
    if story.pod["source"] == PodSource.EVENT:
        yield (
            "Note: known from imported Events alone. They don't tell when it was created or ready,"
            " what it asked for, or which other nodes there were."
        )
    for gap in story.gaps:
        yield (
            f"Note: from {show_time(gap['from_us'])} to {show_time(gap['to_us'])}, some"
            f" {gap['kind']} may be missing from the record ({gap['why']})."
        )
