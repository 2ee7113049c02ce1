"""The command line: commands, options, help. The commands' code is in roost/commands, imported when one is called."""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from generator.values.merge import Settings
from generator.values.release import DEFAULT_KUBE_VERSION, DEFAULT_NAME, DEFAULT_NAMESPACE, Release
from roost.commands import call
from roost_lab.cli import RECORD_COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost.commands.render import RenderOptions

_CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
# Packages that extras of Roost bring, not the plain install.
_RECORD_PACKAGES: Final = frozenset({"alembic", "psycopg", "sqlalchemy"})
_EXTRA_PACKAGES: Final = _RECORD_PACKAGES | {"duckdb", "jupyterhub", "rich"}
# Packages that only one option needs, and its extra.
_EXTRAS: Final = {"duckdb": "parquet", "jupyterhub": "hub"}


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; prints help and usage errors."""
    try:
        code = cli.main(args=arguments, prog_name="roost", standalone_mode=False)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRA_PACKAGES:
            raise
        is_replay = arguments[0] in ("simulate", "rehearse") and package not in _RECORD_PACKAGES
        extra = _EXTRAS.get(package, "simulate" if is_replay else "record")
        click.echo(
            f"roost {arguments[0]} needs the package {package}: install Roost with its extra [{extra}]", err=True
        )
        return 2
    return code if isinstance(code, int) else 0


def _release_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add what Helm calls the release; `command` gets one `release`."""

    @click.option("--release", "name", metavar="NAME", default=DEFAULT_NAME, show_default=True, help="Helm's release.")
    @click.option(
        "-n", "--namespace", metavar="NAME", default=DEFAULT_NAMESPACE, show_default=True, help="Where it is."
    )
    @click.option(
        "--kube-version",
        metavar="VERSION",
        default=DEFAULT_KUBE_VERSION,
        show_default=True,
        help="The cluster's version.",
    )
    @wraps(command)
    def with_release(*, name: str, namespace: str, kube_version: str, **rest: Any) -> int:  # noqa: ANN401 - click's
        return command(release=Release(name, namespace, kube_version), **rest)

    return with_release


def _values_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that select the values; `command` gets one `options`."""

    @click.option("-f", "--values", "files", metavar="FILE", multiple=True, help="Values; later files win. - is stdin.")
    @click.option(
        "--set", "values", metavar="KEY=VALUE", multiple=True, help="As Helm's --set: a.b=c, a[0].b=1, a={x,y}."
    )
    @click.option("--set-string", "strings", metavar="KEY=VALUE", multiple=True, help="Like --set, always text.")
    @click.option("--set-json", "jsons", metavar="KEY=JSON", multiple=True, help="Like --set, the value is JSON.")
    @_release_options
    @wraps(command)
    def with_values(
        *,
        files: tuple[str, ...],
        values: tuple[str, ...],
        strings: tuple[str, ...],
        jsons: tuple[str, ...],
        release: Release,
        **rest: Any,  # noqa: ANN401 - click's
    ) -> int:
        from roost.commands.render import RenderOptions  # noqa: PLC0415 - other commands needn't load the generator

        return command(options=RenderOptions(files, Settings(jsons, values, strings), release), **rest)

    return with_values


def _cluster_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add how to reach the cluster; `command` gets `kubeconfig` and `context`."""
    context = click.option("--context", metavar="NAME", help="Of the kubeconfig. Default: its current one.")
    help_ = "Default: $KUBECONFIG, else the pod's own account in a pod, else ~/.kube/config."
    return click.option("--kubeconfig", metavar="FILE", help=help_)(context(command))


def _version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib import metadata  # noqa: PLC0415 - takes a fifth of a whole render

        try:
            click.echo(metadata.version("roost"))
        except metadata.PackageNotFoundError:
            click.echo("unknown: roost is not installed")
        context.exit()


class _Program(click.Command):
    """Runs `serve` of `package`.main with an object of `package`.options; both are imported only when it is called."""

    def __init__(self, *, package: str, kind: str, **settings: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(**settings)
        self._package, self._kind = package, kind

    def _options_type(self) -> type:
        kind: type = getattr(import_module(f"{self._package}.options"), self._kind)
        return kind

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The fields of the options, and --help."""
        if not self.params:
            from roost_core.options import parameters  # noqa: PLC0415 - other commands needn't load dataclasses

            self.params = parameters(self._options_type())
        return super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> int:
        """Serve until SIGTERM."""
        code: int = import_module(f"{self._package}.main").serve(self._options_type()(**ctx.params))
        return code


@click.group(context_settings=_CONTEXT)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def cli() -> None:
    """Decide on which nodes the pods of JupyterHubs and BinderHubs run.

    Exit codes: 0 done, 1 faulty values, 2 wrong usage.
    """


@cli.command("render", short_help="Render values to Kubernetes manifests.")
@_values_options
@click.option(
    "--output-dir", metavar="FOLDER", help="Write one file per object and a kustomization; the folder is replaced."
)
@click.option(
    "--only",
    type=click.Choice(["cluster", "namespace"]),
    help="cluster: the objects without a namespace, for the cluster's operator. namespace: all others, as with "
    "clusterResources: false.",
)
def _render(*, options: RenderOptions, output_dir: str | None, only: str | None) -> int:
    """Render values to Kubernetes manifests.

    \b
    roost render -f values.yaml --release roost --namespace hub | kubectl apply -f -
    roost render -f values.yaml --output-dir manifests && kubectl apply -k manifests
    roost render -f values.yaml --only cluster > for-the-clusters-operator.yaml
    """
    return call("render", options, output_dir, only)


@cli.command("images", short_help="List the images that an install needs, for a copy of them.")
@_values_options
@click.option("--digests", is_flag=True, help="Ask the registries, without an account, for each image's digest.")
@click.option(
    "--copy-to", metavar="REGISTRY", help="Print SOURCE TARGET of each copy into this registry, or a path of it."
)
def _images(*, options: RenderOptions, digests: bool, copy_to: str | None) -> int:
    """List the images that an install needs: Roost's, Kubernetes', and your users' that pullers bring to nodes.

    With --digests each line is NAME:TAG@sha256:…, of all architectures together; sources of copies are then
    NAME@sha256:…. A target is REGISTRY/HOST/PATH:TAG, so no copy replaces another. Exit codes: 0 done, 1 faulty values
    or no digest of some image (stderr says of which), 2 wrong usage.

    \b
    roost images -f values.yaml --kube-version v1.37.2
    roost images -f values.yaml --kube-version v1.37.2 --digests > images.txt
    roost images -f values.yaml --kube-version v1.37.2 --digests --copy-to registry.example.org > copies.txt
    """
    return call("images", options, digests, copy_to)


@cli.command("validate", short_help="Print every fault and warning of the values.")
@_values_options
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings, too.")
@click.option(
    "--pod", metavar="FILE", help="Also print this pod, in YAML or JSON, as it would be admitted. - is stdin."
)
def _validate(*, options: RenderOptions, strict: bool, pod: str | None) -> int:
    """Print every fault and warning of the values, with file, line, key and fix.

    \b
    roost validate -f values.yaml --kube-version v1.37.2
    roost validate -f values.yaml --release roost --namespace hub --pod pod.yaml
    """
    return call("validate", options, pod, strict=strict)


@cli.command("headroom", short_help="Print the placeholders of the coming days, and their node-hours.")
@_values_options
@click.option(
    "--at", metavar="TIME", help="Start, such as 2026-10-01T08:00 in the windows' time zone, or with Z. Default: now."
)
@click.option("--days", type=click.IntRange(1, 366), default=7, show_default=True)
@click.option("--node-cpu", metavar="QUANTITY", help="CPU of a node that its daemon pods leave for placeholders.")
@click.option("--node-memory", metavar="QUANTITY", help="The same for memory.")
@click.option(
    "--history",
    "config_map",
    metavar="FILE",
    default="",
    help="The controllers' ConfigMap of what they learned; - is stdin.",
)
@click.option("--database", metavar="URL", default="", help="Learn from the recorder's database instead.")
@click.option("--trace", metavar="FILE", default="", help="Learn from a launch trace instead.")
@click.option("--explain", metavar="TIME", help="Print the number at this time, and why.")
@click.option(
    "--config-map", "prints_config_map", is_flag=True, help="Print a ConfigMap for the controllers to go on from."
)
def _headroom(
    *,
    options: RenderOptions,
    config_map: str,
    database: str,
    trace: str,
    **asked: Any,  # noqa: ANN401 - the fields of HeadroomOptions
) -> int:
    """Print each change of each placeholder set in the coming days, with placeholder-hours and node-hours.

    With a history, sets that learn show what they would have if nothing more were learned.

    \b
    roost headroom -f values.yaml --node-cpu 3920m --node-memory 14Gi
    kubectl get configmap roost-roost-headroom-history -o yaml | roost headroom -f values.yaml --history - --days 1
    roost headroom -f values.yaml --database roost.db --config-map | kubectl apply -f -
    """
    from roost.commands.headroom import HeadroomOptions  # noqa: PLC0415 - other commands needn't load it
    from roost.commands.headroom_history import HistorySource  # noqa: PLC0415

    return call("headroom", options, HeadroomOptions(source=HistorySource(config_map, database, trace), **asked))


@cli.command("rehearse", short_help="Play an event's day with and without a booking: waits and node-hours.")
@click.option(
    "--event",
    metavar="TEXT",
    required=True,
    help='Like "2026-11-24T09:00 120 people image quay.io/me/course:1"; also zone NAME (else UTC) and set NAME.',
)
@click.option("-f", "--values", "files", metavar="FILE", multiple=True, help="Values; later files win.")
@click.option("--set", "values", metavar="KEY=VALUE", multiple=True, help="As Helm's --set: a.b=c, a[0].b=1.")
@click.option("--trace", "traces", metavar="FILE", multiple=True, help="Launches beside the event's. Default: made up.")
@click.option(
    "--launches",
    type=click.FloatRange(0, 1e6),
    default=2000,
    show_default=True,
    help="Made-up launches a day beside the event's.",
)
@click.option(
    "--assume", "assumptions", metavar="NAME=VALUE", multiple=True, help="As --set of `roost simulate`: nodes, pulls, …"
)
@click.option("--pools", metavar="FILE", help="Several pools of nodes with machines and prices, instead of one.")
@click.option("--seeds", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def _rehearse(**options: Any) -> int:  # noqa: ANN401 - click's
    """Play the hours around an event twice, with and without the booking, and say in a sentence what comes of it.

    \b
    roost rehearse -f values.yaml --event "2026-11-24T09:00 120 people image quay.io/me/course:1 zone Europe/Berlin"
    """
    from roost_lab.commands.rehearse import RehearseOptions  # noqa: PLC0415 - other commands needn't load the simulator

    return call("rehearse", RehearseOptions(**options))


@cli.command("diff", short_help="Show what changes between two values files, or values and manifests.")
@click.argument("before")
@click.argument("after")
@_release_options
@click.option("--color", "colour", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
def _diff(*, before: str, after: str, release: Release, colour: str) -> int:
    """Show what changes between BEFORE and AFTER, object by object and field by field.

    Each is a values file, a file of manifests, or a folder of them; - is stdin. Exit codes as with diff: 0 equal,
    1 different, 2 an error (also for faulty values).

    \b
    roost diff old-values.yaml new-values.yaml --release roost --namespace hub
    roost diff manifests/ new-values.yaml
    """
    return call("diff", before, after, release, colour)


@cli.command("import", short_help="Convert zero-to-jupyterhub's or BinderHub's values to Roost's.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--release", metavar="NAME", default="hub", show_default=True, help="The hub's release.")
@click.option(
    "--hub", metavar="KEY", help="The key of the hub's values, like basehub.jupyterhub. Default: the only one."
)
@click.option(
    "--spawn-page", is_flag=True, help="Print lines for the hub's own values instead: plain words for users who wait."
)
@click.option(
    "--history",
    metavar="FILE",
    help="A record's database or a launch trace: each proposal says what it would have done with it (a minute or so).",
)
def _import(*, files: tuple[str, ...], release: str, hub: str | None, spawn_page: bool, history: str | None) -> int:
    """Convert zero-to-jupyterhub's or BinderHub's values to Roost's. FILE can be - for stdin; later files win.

    stderr lists what could not be mapped, what to switch off in the hub, and what Roost will and won't do for it.

    \b
    roost import hub-values.yaml > values.yaml
    roost import common.yaml staging.yaml > values.yaml
    roost import hub-values.yaml --history roost.db > values.yaml
    roost import hub-values.yaml --spawn-page > spawn-page.yaml
    """
    return call("import_values", files, release, hub, spawn_page=spawn_page, history=history)


@cli.command(
    "webhook",
    cls=_Program,
    package="webhook",
    kind="WebhookOptions",
    short_help="Serve admission reviews until SIGTERM.",
)
def _webhook() -> None:
    """Serve admission reviews until SIGTERM.

    \b
    roost webhook --policy policy.json --release roost --namespace hub --no-cluster \\
        --certificate-folder tls/
    """


@cli.command(
    "controllers",
    cls=_Program,
    package="roost.controllers",
    kind="ControllersOptions",
    short_help="Run the image gate, the placeholder mover and the other controllers until SIGTERM.",
)
def _controllers() -> None:
    """Run the image gate, the placeholder mover and the other controllers until SIGTERM.

    \b
    roost controllers --settings controllers.json --release roost --namespace hub --kubeconfig ~/.kube/config --dry-run
    """


@cli.command("cleanup", short_help="Remove a release's labels, taints and conditions from the nodes.")
@click.option("--release", metavar="NAME", required=True)
@click.option("-n", "--namespace", metavar="NAME", required=True)
@click.option("--kubeconfig", metavar="FILE", help="Kubeconfig of the cluster.")
@click.option("--in-cluster", is_flag=True, help="Use the pod's service account instead of --kubeconfig.")
@click.option(
    "--controllers",
    metavar="NAME",
    default="",
    help="The controllers' Deployment, scaled to 0 first: it would add the labels again.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, without doing it.")
def _cleanup(
    *, release: str, namespace: str, kubeconfig: str | None, in_cluster: bool, controllers: str, dry_run: bool
) -> int:
    """Remove a release's labels, taints and conditions from the nodes, before or after an uninstall.

    `helm uninstall` runs this. Exit codes: 0 nothing is left, 1 something is left, 2 wrong usage.

    \b
    roost cleanup --release roost --namespace hub --kubeconfig ~/.kube/config
    """
    from roost.controllers.cleanup import CleanupOptions  # noqa: PLC0415 - other commands needn't load the client

    options = CleanupOptions(release=release, namespace=namespace, controllers=controllers, dry_run=dry_run)
    return call("cleanup", options, kubeconfig, in_cluster)


@cli.command("doctor", short_help="Say what keeps an install from doing its work, and how to mend it.")
@_values_options
@_cluster_options
@click.option(
    "--before-install", is_flag=True, help="Whether these values can be installed; nothing of Roost is there."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--pod", metavar="FILE", help="Only try this pod, in YAML or JSON, and print what Roost changes. - is stdin."
)
@click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(0, 600),
    default=0.0,
    help="With --pod: try again for so long. Default: once.",
)
def _doctor(*, options: RenderOptions, **asked: Any) -> int:  # noqa: ANN401 - the fields of DoctorOptions
    """Look at an install from outside, and print what is wrong, by what it shows, and how to mend it.

    Changes nothing: pods are created with dryRun only. --kube-version is the cluster's own. `helm test` runs --pod,
    which needs no values, only the right to create pods there. Exit codes: 0 no error was found (the pod is placed), 1
    one was found or the cluster can't be asked, 2 wrong usage.

    \b
    roost doctor --pod pod.yaml --namespace hub --kubeconfig ~/.kube/config
    roost doctor -f values.yaml --release roost --namespace hub --kubeconfig ~/.kube/config
    roost doctor -f values.yaml --release roost --namespace hub --kubeconfig ~/.kube/config --before-install
    """
    from roost.commands.doctor import DoctorOptions  # noqa: PLC0415 - other commands needn't load the client

    return call("doctor", options, DoctorOptions(**asked))


@cli.command(
    "record",
    cls=_Program,
    package="roost_lab.recorder",
    kind="RecorderOptions",
    short_help="Record scheduling decisions and start phases until SIGTERM.",
)
def _record() -> None:
    """Record scheduling decisions and start phases until SIGTERM.

    \b
    roost record --settings recorder.json --database roost.db --kubeconfig ~/.kube/config
    """


for _command in RECORD_COMMANDS:
    cli.add_command(_command)


@cli.command("top", short_help="Draw nodes, users, placeholders, builds and pulls live in the terminal.")
@click.option("--settings", metavar="FILE", required=True, help="recorder.json of the rendered ConfigMap.")
@_cluster_options
@click.option("--once", is_flag=True, help="Draw once and exit.")
def _top(*, settings: str, kubeconfig: str | None, context: str | None, once: bool) -> int:
    """Draw nodes, users, placeholders, builds and pulls live in the terminal, until q.

    s sorts, / filters, arrows scroll.

    \b
    roost top --settings recorder.json --kubeconfig ~/.kube/config
    """
    return call("top", settings, kubeconfig, context, once)


@cli.command("simulate", short_help="Replay launches under values files, and compare the outcomes.")
@click.option("--trace", "traces", metavar="FILE", multiple=True, help="Launches; repeats. Default: made-up ones.")
@click.option(
    "--days", type=click.FloatRange(0, 400, min_open=True), help="Of made-up launches, without --trace. Default: 10."
)
@click.option(
    "--policy", "policies", metavar="NAME", multiple=True, help="A shipped values file; repeats. list: show them."
)
@click.option(
    "--values", "-f", metavar="FILE[,FILE]", multiple=True, help="Your own; repeats, each a policy. Later files win."
)
@click.option("--list-policies", is_flag=True, help="Print the shipped policies and exit.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=10, show_default=True, help="Replays of each policy.")
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="An assumption about the world; repeats.")
@click.option("--pools", metavar="FILE", help="Several pools of nodes with machines and prices, instead of one.")
@click.option("--sessions", metavar="LENGTH[,LENGTH]", default="", help="short, mid, long: session lengths to compare.")
@click.option(
    "--vary", metavar="NAME=VALUE,VALUE", multiple=True, help="Other values of an assumption to compare; repeats."
)
@click.option("--jobs", "-j", type=click.IntRange(1, 1024), help="Processes. Default: one per processor.")
@click.option("--dask", metavar="ADDRESS", help="Replay on this Dask cluster instead: its scheduler's address.")
@click.option("--results", metavar="FOLDER", help="Folder of results. Default: ~/.cache/roost/simulate.")
@click.option("--output", metavar="FILE", help="Default: stdout. .html, .json and .csv select the format.")
@click.option("--format", "form", type=click.Choice(["text", "html", "json", "csv"]), help="Default: text.")
@click.option(
    "--record", metavar="FOLDER", help="Also record a replay of each policy there, for `roost view` and `roost why`."
)
@click.option(
    "--suggest",
    is_flag=True,
    help="Search values, machines and the autoscaler's settings from one policy; print what to set.",
)
@click.option(
    "--target-seconds",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    help="With --suggest: the longest wait of 95 of 100 starts.",
)
def _simulate(*, list_policies: bool, policies: tuple[str, ...], **rest: Any) -> int:  # noqa: ANN401 - click's
    """Replay launches under values files, and compare cold starts, waiting and node-hours with what is possible.

    Results are kept: after Ctrl-C the same command continues where it stopped.

    \b
    roost simulate
    roost simulate --trace launches.jsonl.gz --policy z2jh --values tomorrow.yaml --output report.html
    roost simulate --trace launches.jsonl.gz --policy z2jh --policy roost --sessions short,mid,long --jobs 8
    roost simulate --policy z2jh --policy roost --seeds 1 --record replays
    roost simulate --trace launches.jsonl.gz --values today.yaml --suggest --target-seconds 20 > suggested.yaml
    """
    from roost_lab.commands.simulate import SimulateOptions  # noqa: PLC0415 - other commands needn't load the simulator

    if rest["traces"] and rest["days"] is not None:
        raise click.UsageError("--days is for made-up launches: leave it out, or --trace")
    if rest["record"] and rest["suggest"]:
        raise click.UsageError("--record is for policies that are compared: leave it out, or --suggest")
    chosen = (*policies, "list") if list_policies else policies
    return call("simulate", SimulateOptions(policies=chosen, **rest))
