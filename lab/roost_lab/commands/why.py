"""`roost why`: explain one pod's start in plain sentences."""

import click

from roost_lab.commands.options import database_option, read_moment, refuse
from roost_lab.pages.phrases import show_plain, show_time
from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.pod_story import find_pods, read_story, similar_names
from roost_lab.recorder.store.database import Store, StoreError


@click.command("why")
@click.argument("pod", metavar="[NAMESPACE/]POD")
@database_option()
@click.option(
    "--at",
    metavar="TIME",
    help="Of several pods with this name, the one that existed at this time (ISO 8601, UTC).",
)
def command(*, pod: str, database: str, at: str | None) -> int:
    """Explain where a pod was placed, which other nodes there were, and what it waited for; of
    a pod that waits, what each node lacks for it and what would help.

    \b
    roost why jupyter-ada --database roost.db
    roost why jhub/jupyter-ada --at 2026-11-21T10:30 --database postgresql://roost@db/roost
    """
    at_us = read_moment("--at", at) if at else None
    namespace, _, pod_name = pod.rpartition("/")
    try:
        store = Store.open_for_reading(database)
        pods = find_pods(store, pod_name, namespace or None, at_us)
        if not pods:
            when = f" at {show_time(at_us)}" if at_us is not None else ""
            near = similar_names(store, pod_name)
            hint = f" Similar names: {show_plain(', '.join(near))}." if near else ""
            return refuse("why", f"no pod {pod} was recorded{when}.{hint}", code=1)
        click.echo(explain(read_story(store, pods[0])), nl=False)
        if len(pods) > 1:
            older = f"{len(pods) - 1} older pods of this name are recorded"
            click.echo(f"\n{older}: choose one with --at TIME.")
    except StoreError as error:
        return refuse("why", error)
    return 0
