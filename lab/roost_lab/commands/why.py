"""`roost why`: explain one pod's start in plain sentences."""

from __future__ import annotations

import sys

import click

from roost_lab.pages.phrases import show_plain, show_time
from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.pod_story import find_pods, read_story, similar_names
from roost_lab.recorder.answers.why_json import to_json
from roost_lab.recorder.store.database import Store, StoreError


def run(name: str, database: str, at_us: int | None, form: str = "text") -> int:
    """Print the explanation, as text or json; 1 when there is no such pod or no such database."""
    namespace, _, pod_name = name.rpartition("/")
    try:
        store = Store.open_for_reading(database)
        pods = find_pods(store, pod_name, namespace or None, at_us)
        if not pods:
            when = f" at {show_time(at_us)}" if at_us is not None else ""
            near = similar_names(store, pod_name)
            hint = f" Similar names: {show_plain(', '.join(near))}." if near else ""
            print(f"roost why: no pod {name} was recorded{when}.{hint}", file=sys.stderr)  # noqa: T201 - a command's talk
            return 1
        story = read_story(store, pods[0])
        click.echo(to_json(story) if form == "json" else explain(story), nl=False)
        if len(pods) > 1 and form != "json":
            click.echo(f"\n{len(pods) - 1} older pods of this name are recorded: choose one with --at TIME.")
    except StoreError as error:
        print(f"roost why: {error}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    return 0
