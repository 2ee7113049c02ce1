"""Lines of every format become launches; a line that can't be used is counted with its reason and place."""

from pathlib import Path
from typing import Any

import pytest

from lab.tests.trace_lines import NOON, launch, read, reasons, recorded, write
from roost_lab.traces import files as trace_files
from roost_lab.traces import recorder as trace_recorder
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.counts import MOST_REASONS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_every_version_of_the_archive_is_read(tmp_path: Path, version: int) -> None:
    attempts, counts = read(write(tmp_path, launch(version=version, origin="gke.mybinder.org", ref="abc")))
    assert attempts[0].repository == "GitHub/ada/engine"
    assert attempts[0].image == ("GitHub/ada/engine@abc" if version >= 4 else "GitHub/ada/engine/master")
    assert counts.formats == {f"binderhub.jupyter.org/launch {version}": 1}
    assert not counts.notes


def test_a_branch_and_its_commit_are_one_image_once_the_trace_resolves_them(tmp_path: Path) -> None:
    lines = [launch(version=4, spec=f"ada/engine/{ref}", ref="0" * 40) for ref in ("master", "0" * 40)]
    attempts, _ = read(write(tmp_path, *lines, launch(spec="ada/engine/" + "0" * 40)))
    assert {attempt.image for attempt in attempts} == {"GitHub/ada/engine@" + "0" * 40}


def test_github_names_are_folded_for_the_repository_and_kept_for_the_image(tmp_path: Path) -> None:
    attempts, _ = read(write(tmp_path, launch(spec="Ada/Engine.git/master"), launch(spec="ada/engine/master")))
    assert {attempt.repository for attempt in attempts} == {"GitHub/ada/engine"}
    assert [attempt.image for attempt in attempts] == ["GitHub/Ada/Engine.git/master", "GitHub/ada/engine/master"]


@pytest.mark.parametrize(
    ("provider", "spec", "repository"),
    [
        ("GitHub", "o/r/feature/x", "GitHub/o/r"),
        ("Gist", "Ada/0123abcd/master", "Gist/ada/0123abcd"),
        ("GitLab", "group%2Fsub%2Fproject/feature/x", "GitLab/group/sub/project"),
        ("GitLab", "group/sub/project/master", "GitLab/group/sub/project"),
        ("Git", "https%3A%2F%2Fexample.org%2FMixed.git/0123", "Git/https://example.org/Mixed"),
        ("Git", "example.org/Mixed/0123", "Git/example.org/Mixed"),
        ("Zenodo", "10.5281/zenodo.3242074", "Zenodo/10.5281/zenodo.3242074"),
    ],
)
def test_repositories_of_each_provider(tmp_path: Path, provider: str, spec: str, repository: str) -> None:
    attempts, _ = read(write(tmp_path, launch(provider=provider, spec=spec)))
    assert attempts[0].repository == repository


def test_a_recorded_launch_keeps_its_time_sizes_and_length(tmp_path: Path) -> None:
    attempts, _ = read(write(tmp_path, recorded(0.25)))
    assert attempts == [
        Attempt(
            0,
            NOON + 0.25,
            "https://github.com/ada/engine",
            "registry.example/ada-engine:" + "0" * 40,
            1_500_000_000,
            900.5,
            10,
            550_000_000,
            "hub",
        )
    ]


def test_what_the_recorder_does_not_know_is_left_to_be_drawn(tmp_path: Path) -> None:
    unknown = recorded(repository="", ref="", image_bytes=None, seconds=None, cpu_millicores=0, memory_bytes=0)
    attempts, counts = read(write(tmp_path, unknown))
    assert attempts[0] == (0, attempts[0].moment, "", unknown["image"], None, None, None, None, "hub")
    assert not counts.notes


def test_what_the_recorder_exports_is_read() -> None:
    from roost_lab.recorder.answers import exports  # noqa: PLC0415 - the twin

    assert exports.LAUNCH_SCHEMA == trace_recorder.SCHEMA
    assert max(trace_recorder.VERSIONS) == exports.LAUNCH_VERSION


@pytest.mark.parametrize(
    ("ready_seconds", "seconds", "session"), [(0, 5, 5), (2.5, 2.5, 0), (3, 2, 0), (None, 5, None), (2, None, None)]
)
def test_a_recorded_session_lasts_from_ready_to_gone(
    tmp_path: Path, ready_seconds: float | None, seconds: float | None, session: float | None
) -> None:
    attempts, counts = read(write(tmp_path, recorded(ready_seconds=ready_seconds, seconds=seconds)))
    assert [one.session_seconds for one in attempts] == [session]
    assert not counts.notes


@pytest.mark.parametrize("hub", ["Hub", "hub.example", "-hub", "h" * 64, 3])
def test_a_hub_is_the_name_of_a_namespace(tmp_path: Path, hub: object) -> None:
    attempts, counts = read(write(tmp_path, recorded(), recorded(1, hub=hub)))
    assert len(attempts) == 1
    (why,) = reasons(counts)
    assert why.startswith("`hub` is")


@pytest.mark.parametrize("key", ["image_bytes", "cpu_millicores", "memory_bytes", "seconds", "ready_seconds"])
@pytest.mark.parametrize("found", [-1, True, "many", 1e300, []])
def test_impossible_amounts_are_noted_and_drawn_instead(tmp_path: Path, key: str, found: object) -> None:
    attempts, counts = read(write(tmp_path, recorded() | {key: found}))
    assert [attempts[0][4], attempts[0][6], attempts[0][7], attempts[0][5]].count(None) == 1
    assert [what for what in counts.notes if key in what]


def test_only_users_are_taken_from_a_recorded_export(tmp_path: Path) -> None:
    attempts, counts = read(write(tmp_path, recorded(), recorded() | {"class": "placeholder"}))
    assert len(attempts) == 1
    assert reasons(counts) == {'class "placeholder" isn\'t `user`': 1}


# Unusable lines


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "empty"),
        ("{", "not valid JSON"),
        ("\ufeff{}", "not valid JSON"),
        ('{"a": NaN}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "not a JSON object"),
        ("17", "not a JSON object"),
        ({}, "`schema` is missing"),
        (launch(schema="other/launch"), 'schema "other/launch" is unknown'),
        (launch(schema=7), "schema 7 is unknown"),
        (launch(version=7), "version 7 of binderhub.jupyter.org/launch is unknown"),
        (launch(version="2"), 'version "2" of binderhub.jupyter.org/launch is unknown'),
        (launch(version=True), "version true of binderhub.jupyter.org/launch is unknown"),
        (recorded(version=2), "version 2 of roost.hub.jupyter.org/launch is unknown"),
        (recorded(version=4), "version 4 of roost.hub.jupyter.org/launch is unknown"),
        (launch(provider=None), "`provider` isn't a name"),
        (launch(spec=["x"]), "`spec` isn't a text of 1 to 4096 characters"),
        (launch(spec=""), "`spec` isn't a text of 1 to 4096 characters"),
        (launch(spec="x" * 5000), "`spec` isn't a text of 1 to 4096 characters"),
        (launch(status="maybe"), '`status` is "maybe", neither success nor failure'),
        (launch(timestamp=17), "`timestamp` isn't an ISO 8601 time"),
        (launch(timestamp="yesterday"), "`timestamp` isn't an ISO 8601 time"),
        (launch(timestamp="2019-05-22"), "`timestamp` isn't an ISO 8601 time"),
        (launch(timestamp="1970-01-01T00:00:00Z"), "`timestamp` is not between the years 2000 and 2100"),
        (launch(timestamp="9999-12-31T23:59:59-23:59"), "`timestamp` is not between the years 2000 and 2100"),
        (recorded(repository="", image=""), "neither `image` nor `repository` is known"),
        (recorded(image=17), "`image` isn't a text of up to 4096 characters"),
        ({"object": "Pod", "name": "x", "endpoint": "preStop"}, "`schema` is missing"),
        ("x" * (trace_files.MOST_LINE_BYTES + 1), f"longer than {trace_files.MOST_LINE_BYTES} bytes"),
    ],
)
def test_a_line_that_cannot_be_used_is_counted_with_reason_and_place(
    tmp_path: Path, line: dict[str, Any] | str, reason: str
) -> None:
    path = write(tmp_path, launch(), line, launch(1))
    attempts, counts = read(path)
    assert len(attempts) == 2
    assert reasons(counts) == {reason: 1}
    assert counts.skipped[reason].place == f"{path}:2"


def test_unknown_providers_are_used_and_noted_and_unknown_fields_are_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path, launch(mood="good", ref="not of version 2"), launch(provider="Forge"))
    attempts, counts = read(path)
    assert [attempt.image for attempt in attempts] == ["GitHub/ada/engine/master", "Forge/ada/engine/master"]
    assert sorted(counts.notes) == ['provider "Forge" is unknown: its names are taken as they are']


def test_however_many_reasons_there_are_memory_is_bounded(tmp_path: Path) -> None:
    _, counts = read(write(tmp_path, launch(), *(launch(schema=f"s{index}") for index in range(1000))))
    assert len(counts.skipped) == MOST_REASONS + 1
    assert counts.skipped_lines == 1000
