"""Each sample and each command of the documentation is one that Roost takes."""

import re
import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

import click
import pytest
import yaml

from generator.importing.importer import import_layers
from generator.pipeline import find_faults, render
from generator.values.loader import load
from generator.values.merge import merge_values
from generator.values.release_name import Release
from roost.cli import cli
from roost_core.release.bookings import Limits, parse_events
from roost_core.release.reader import Reader
from tests.builders import CHART_VALUES
from tests.recorded_data import rows
from tools.root import ROOT

# values of zero-to-jupyterhub's: below, and test_import_sample.py
HUBS: Final = frozenset({"jupyterhub", "proxy"})
OTHERS: Final = frozenset(rows("repository/samples-of-others"))
# Kinds of objects -> where Roost's values are in them.
KINDS: Final[dict[str, list[str]]] = dict(rows("repository/sample-kinds"))


class Sample(NamedTuple):
    # Path and line.
    place: str
    text: str


def samples() -> list[Sample]:
    found = []
    folders = (ROOT / "docs", ROOT / "lab" / "docs")
    for path in (
        ROOT / "README.md",
        *(page for folder in folders for page in sorted(folder.glob("**/*.md"))),
    ):
        text = path.read_text(encoding="utf-8")
        for block in re.finditer(r"^```ya?ml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, block.start()) + 2
            found.append(Sample(f"{path.relative_to(ROOT)}:{line}", block[1]))
    return found


def values_of(sample: Sample) -> str | None:
    """The values for Roost's own chart; None if the sample is another file."""
    document = yaml.safe_load(sample.text)
    if document is None:
        # Proposals of `roost import`: comments that hold values below a numbered line each.
        return re.sub(r"^# ?(\d+\. .*\n)?", "", sample.text, flags=re.MULTILINE)
    first = next(iter(document))
    if first in HUBS or first in OTHERS:
        return None
    if first == "apiVersion":
        keys = KINDS[document["kind"]]
        for key in keys:
            document = document[key]
        return yaml.safe_dump(document) if keys else None
    # As a dependency of a parent's chart.
    return yaml.safe_dump(document["roost"]) if list(document) == ["roost"] else sample.text


SAMPLES: Final = samples()
VALUES: Final = [
    Sample(sample.place, text) for sample in SAMPLES if (text := values_of(sample)) is not None
]


def test_samples_are_found() -> None:
    pages = {sample.place.partition(":")[0] for sample in VALUES}
    assert pages >= {"docs/headroom.md", "docs/how-to/gitops.md", "docs/install-helm.md"}
    assert len(VALUES) < len(SAMPLES)


@pytest.mark.parametrize("sample", VALUES, ids=lambda sample: sample.place)
def test_a_sample_of_values_has_no_fault_and_no_warning_and_renders(sample: Sample) -> None:
    merged = merge_values(CHART_VALUES, [load(sample.text.encode(), sample.place)])
    assert [
        str(fault)
        for fault in find_faults(merged, Release(), with_hints=True)
        if fault.severity != "hint"
    ] == []
    manifests, _ = render(merged, Release())
    assert manifests


def test_the_pullers_page_names_the_daemon_sets_of_its_sample() -> None:
    sample = next(sample for sample in SAMPLES if sample.place.startswith("docs/puller.md"))
    manifests, _ = render(
        merge_values(CHART_VALUES, [load(sample.text.encode(), "")]), Release("roost")
    )
    names = {
        manifest.identity.name for manifest in manifests if manifest.identity.kind == "DaemonSet"
    }
    page = (ROOT / "docs/puller.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(roost-puller[a-z0-9-]*)`", page)) == names


def test_a_sample_of_a_hubs_values_is_imported() -> None:
    hubs = [
        sample for sample in SAMPLES if next(iter(yaml.safe_load(sample.text) or {"": 0})) in HUBS
    ]
    assert {sample.place.partition(":")[0] for sample in hubs} >= {"docs/tutorials/kind.md"}
    for sample in hubs:
        result = import_layers([(sample.place, sample.text)])
        assert result.switch_off, sample.place
        assert [str(fault) for fault in result.warnings if fault.severity != "hint"] == [], (
            sample.place
        )


def test_a_sample_of_booked_events_is_read_whole() -> None:
    texts = [
        text
        for sample in SAMPLES
        for text in (yaml.safe_load(sample.text) or {}).get("data", {}).values()
        if sample.place.startswith("docs/events.md")
    ]
    assert texts
    for text in texts:
        read = Reader()
        entries = yaml.safe_load(text)
        assert len(parse_events(read, entries, "events", Limits(("default",), 500))) == len(entries)
        assert read.faults == []


PAGES: Final = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
    *sorted((ROOT / "lab" / "docs").glob("**/*.md")),
)
BLOCK: Final = re.compile(r"^ *```(?:sh|console|)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
BEGIN: Final = re.compile(r"(?:^|[|;] *|&& *| -- |do )(roost [a-z-].*)")
# What ends a command, unless it is quoted. The name of a command or of an argument has none of
# these.
END: Final = re.compile(r"[();<>|&]+")
# What another command prints, in the place of arguments.
PRINTED: Final = re.compile(r"\$\([^)]*\)")


class Command(NamedTuple):
    # Path and line.
    place: str
    arguments: tuple[str, ...]
    # By `kubectl exec`, in the recorder's pod.
    in_pod: bool


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines of shell in blocks, with the number of each one's last line; a line that ends in a
    backslash goes on.
    """
    for block in BLOCK.finditer(text):
        # With prompts, a line that has none was printed.
        prompts = re.search(r"^ *\$ ", block[1], re.MULTILINE) is not None
        joined = ""
        for number, shown in enumerate(
            block[1].splitlines(), text.count("\n", 0, block.start()) + 2
        ):
            line = shown.strip()
            if prompts and not joined and not line.startswith("$ "):
                continue
            joined += line.removeprefix("$ ").removesuffix("\\")
            if not line.endswith("\\"):
                yield number, joined
                joined = ""


def words(line: str) -> Iterator[str]:
    read = shlex.shlex(PRINTED.sub("", line), posix=True, punctuation_chars=True)
    read.whitespace_split = True
    for word in read:
        if END.fullmatch(word):
            return
        yield word


def commands() -> list[Command]:
    found = []
    for path in PAGES:
        for number, line in lines(path.read_text(encoding="utf-8")):
            for begin in BEGIN.finditer(line):
                place = f"{path.relative_to(ROOT)}:{number}"
                in_pod = begin[0].startswith(" -- ")
                calls = re.split(r"(?<=[|]) *(?=roost )", begin[1])
                found += [Command(place, tuple(words(call))[1:], in_pod) for call in calls]
    return found


COMMANDS: Final = commands()


def parsed(arguments: tuple[str, ...]) -> click.Context:
    """What the command line makes of arguments, without running anything.

    Raises click.UsageError.
    """
    command: click.Command = cli
    name, rest = "roost", list(arguments)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        below = command.get_command(click.Context(command), rest[0])
        if below is None:
            break
        name = rest.pop(0)
        command = below
    if command is cli:
        raise click.UsageError(f"no such command: {arguments}")
    return command.make_context(name, rest)


def test_commands_are_found() -> None:
    assert len(COMMANDS) > 80
    assert {command.place.partition(":")[0] for command in COMMANDS} >= {
        "README.md",
        "docs/tutorials/kind.md",
    }
    assert "records" in {command.arguments[0] for command in COMMANDS}


@pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda command: f"{command.place} {command.arguments[0]}"
)
def test_the_command_line_takes_what_the_documentation_writes(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command.in_pod:
        monkeypatch.setenv("ROOST_DATABASE", "roost.db")
    else:
        monkeypatch.delenv("ROOST_DATABASE", raising=False)
    context = parsed(command.arguments)
    if command.arguments[0] != "import":  # whose --release is the hub's
        given = context.params.get("release") or context.params.get("name")
        assert given != "hub", "In the documentation Roost's release is roost; hub is the hub's."


def test_the_cron_job_of_a_calendar_may_do_what_its_command_needs() -> None:
    text = (ROOT / "docs/how-to/calendar-cronjob.yaml").read_text(encoding="utf-8")
    objects = {entry["kind"]: entry for entry in yaml.safe_load_all(text)}
    pod = objects["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert [entry["name"] for entry in container["env"]] == ["CALENDAR"]
    assert parsed(tuple(container["args"])).params["calendar"] == "$(CALENDAR)"
    (rule,) = objects["Role"]["rules"]
    # As docs/events.md gives them to Ada.
    assert rule["verbs"] == ["get", "patch"]
    assert rule["resourceNames"] == [objects["ConfigMap"]["metadata"]["name"]]
    assert pod["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"]
