"""`roost records share` gives launches away without what they are of, and a replay of them says the same."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.tests import small_worlds
from lab.tests.recorded import BEGIN, HOUR, MINUTE, SECOND, empty_store, phase_record, pod_record
from lab.tests.trace_lines import as_bytes, launch, read, recorded, write
from roost.cli import run
from roost_lab.recorder.store.records import ImageRecord, Phase
from roost_lab.traces.counts import InputCounts
from roost_lab.traces.reading import read_launches
from roost_lab.traces.share import Sharing, shared_lines

if TYPE_CHECKING:
    from pathlib import Path

KEY = bytes(range(32))
COMMIT = "6f1e" * 10
KEPT = {
    "timestamp",
    "schema",
    "version",
    "repository",
    "image",
    "image_bytes",
    "cpu_millicores",
    "memory_bytes",
    "ready_seconds",
    "seconds",
}
# Names that no hash can hold by chance.
names = st.from_regex(r"[g-z]{4}[a-z0-9-]{2,20}", fullmatch=True)
some_lines = st.lists(
    st.one_of(
        st.builds(
            lambda minute, owner, name, ref: launch(minute, f"{owner}/{name}/{ref}"),
            st.integers(0, 90),
            names,
            names,
            st.one_of(names, st.just(COMMIT)),
        ),
        st.builds(
            lambda second, image, pod, bytes_: recorded(
                second, image=f"registry.example/{image}:tag-{pod}", name=f"hub/{pod}", image_bytes=bytes_
            ),
            st.integers(0, 5000),
            names,
            names,
            st.one_of(st.none(), st.integers(1, 10**12)),
        ),
    ),
    min_size=1,
    max_size=8,
)
in_a_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def share(folder: Path, *lines: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    launches = list(read_launches([write(folder, *lines, name="original.jsonl")], InputCounts()))
    return [json.loads(line) for line in shared_lines(launches, Sharing(more.pop("key", KEY), **more))]


def strings(found: Any) -> set[str]:
    """Every string of a JSON value, and the words in it."""
    if isinstance(found, dict):
        return set().union(*(strings(value) for value in found.values()))
    return {found, *re.split(r"[/:@]", found)} if isinstance(found, str) else set()


@in_a_folder
@given(lines=some_lines)
def test_no_string_of_a_launch_but_its_time_is_in_what_is_shared(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    shared = share(tmp_path, *lines)
    text = json.dumps(shared).casefold()
    told = set().union(
        *(strings({key: line[key] for key in line if key not in ("timestamp", "schema", "status")}) for line in lines)
    )
    assert not [one for one in told if len(one) > 3 and one.casefold() in text]
    # Launches that name no hub are told from those that name one.
    assert {frozenset(line) for line in shared} in ({frozenset(KEPT)}, {frozenset(KEPT | {"hub"})})


@in_a_folder
@given(lines=some_lines, data=st.data())
def test_other_names_make_the_same_trace_but_for_its_hashes(
    tmp_path: Path, lines: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Nothing of a name is in the trace, not its length and not its order: only which launches have the same."""
    words = sorted({word for line in lines for word in re.findall(r"[g-z]{4}[a-z0-9-]{2,20}", json.dumps(line))})
    others = data.draw(st.lists(names, min_size=len(words), max_size=len(words), unique=True))
    anew = dict(zip(words, others, strict=True))

    def rename(found: Any) -> Any:
        return re.sub(r"[g-z]{4}[a-z0-9-]{2,20}", lambda word: anew[word.group()], found)

    constant = ("schema", "timestamp", "provider", "status", "repository", "class")
    renamed = [
        {key: rename(value) if isinstance(value, str) and key not in constant else value for key, value in line.items()}
        for line in lines
    ]
    assert numbered(share(tmp_path, *lines)) == numbered(share(tmp_path, *renamed))


def numbered(shared: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hashes by the order of their first appearance."""
    order: dict[str, str] = {}

    def number(found: str) -> str:
        return order.setdefault(found, f"{len(order)} of {len(found)}") if found else found

    hashed = ("repository", "image", "hub")
    return [{**line, **{key: number(line[key]) for key in hashed if key in line}} for line in shared]


def test_hubs_are_told_apart_where_there_are_several_and_not_named(tmp_path: Path) -> None:
    several = share(tmp_path, *(recorded(second, hub=f"zoo-{second % 2}") for second in range(4)))
    hubs = [line["hub"] for line in several]
    assert hubs[0] == hubs[2] != hubs[1] == hubs[3]
    assert "zoo" not in json.dumps(several)
    attempts, counts = read(write(tmp_path, *several, name="shared.jsonl"))
    assert [one.hub for one in attempts] == hubs
    assert not counts.notes
    assert all(line.keys() == KEPT for line in share(tmp_path, recorded(), recorded(1)))


def test_two_runs_have_no_hash_in_common_so_the_key_is_not_guessed_and_not_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, launch(), launch(1), recorded(90))
    outputs = []
    for _ in range(2):
        assert run(["records", "share", "--trace", str(path)]) == 0
        outputs.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    hashes = [{line[key] for line in output for key in ("repository", "image")} for output in outputs]
    assert [len(one) for one in hashes] == [4, 4]
    assert not hashes[0] & hashes[1]
    assert numbered(outputs[0]) == numbered(outputs[1])


def test_sizes_have_two_digits_sessions_whole_seconds_and_the_start_is_not_told(tmp_path: Path) -> None:
    (line,) = share(tmp_path, recorded(image_bytes=1_234_567_890, ready_seconds=12.25, seconds=912.95))
    assert line["image_bytes"] == 1_200_000_000
    assert (line["ready_seconds"], line["seconds"]) == (0.0, 901.0)
    assert (line["cpu_millicores"], line["memory_bytes"]) == (10, 550_000_000)


def test_times_are_as_exact_as_they_were_down_to_the_second(tmp_path: Path) -> None:
    shared = share(tmp_path, launch(0), recorded(62.75))
    assert [line["timestamp"] for line in shared] == ["2019-05-22T12:00:00+00:00", "2019-05-22T12:01:02.000000+00:00"]


def test_a_shift_keeps_hour_and_weekday(tmp_path: Path) -> None:
    (line,) = share(tmp_path, launch(0), weeks=-3)
    assert line["timestamp"] == "2019-05-01T12:00:00+00:00"


def test_rare_images_are_not_linked_and_others_are(tmp_path: Path) -> None:
    lines = [launch(minute, spec) for minute, spec in enumerate(["a/b/c", "d/e/f", "a/b/c", "a/b/c", "d/e/f", "a/b/x"])]
    shared = share(tmp_path, *lines, rare=3)
    assert len({line["image"] for line in shared}) == 1 + 2 + 1
    # The repository a/b is launched four times, one of its images once.
    assert len({line["repository"] for line in shared}) == 1 + 2
    assert len({line["image"] for line in share(tmp_path, *lines)}) == 3


def test_a_name_with_a_commit_stays_one_that_pushes_leave(tmp_path: Path) -> None:
    branch, commit = share(tmp_path, launch(0, "a/b/main"), launch(1, f"a/b/{COMMIT}"))
    assert re.fullmatch(r"[0-9a-f]{20}", branch["image"])
    assert re.fullmatch(r"image@[0-9a-f]{40}", commit["image"])
    assert branch["repository"] == commit["repository"]


def test_a_replay_of_a_shared_trace_has_the_figures_of_the_original(tmp_path: Path) -> None:
    """Sizes of two digits and whole seconds, as a record's often aren't: nothing that a replay counts is lost."""
    lines = [
        recorded(
            round(7200 * (index / 200) ** 0.7),
            image=f"registry.example/image-{index * index % 12}:1",
            repository=f"https://github.com/o/r{index * index % 12}",
            image_bytes=(15 + index * index % 12) * 100_000_000,
            ready_seconds=30,
            seconds=930 + 60 * (index % 40),
        )
        for index in range(200)
    ]
    original = read(write(tmp_path, *lines))[0]
    shared = read(write(tmp_path, *share(tmp_path, *lines), name="shared.jsonl"))[0]
    assert [one.image for one in shared] != [one.image for one in original]
    for name in ("z2jh", "kube-default", "warm-alone"):
        results = [
            small_worlds.play(attempts, small_worlds.policy(name), small_worlds.small(room=10, nodes=8))[0]
            for attempts in (original, shared)
        ]
        assert results[0].cold
        assert small_worlds.comparable(results[0]) == small_worlds.comparable(results[1])


def test_a_record_is_shared_without_users_namespaces_and_digests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = empty_store(tmp_path)
    pod = pod_record(
        "uid-zoe",
        namespace="jhub-staff",
        name="jupyter-zoe",
        image="registry.example.org/course:2026",
        image_digest="sha256:beefbeefbeef",
        repo="https://github.com/Zoe/Engine",
        ref=COMMIT,
        created_us=BEGIN,
        deleted_us=BEGIN + HOUR,
        cpu_millicores=500,
        memory_bytes=2**30,
    )
    puller = replace(pod, uid="puller", pod_class="puller")
    image = ImageRecord(node_uid="uid-n", image=pod.image, image_bytes=1_234_567_890, first_us=BEGIN)
    store.write([pod, puller, phase_record("uid-zoe", Phase.READY, BEGIN + MINUTE + SECOND // 2), image], {})
    assert run(["records", "share", "--database", str(tmp_path / "roost.db")]) == 0
    done = capsys.readouterr()
    (line,) = map(json.loads, done.out.splitlines())
    assert line | {"repository": "", "image": ""} == {
        "timestamp": "2027-01-15T08:00:00.000000+00:00",
        "schema": "roost.hub.jupyter.org/launch",
        "version": 2,
        "repository": "",
        "image": "",
        "image_bytes": 1_200_000_000,
        "cpu_millicores": 500,
        "memory_bytes": 2**30,
        "ready_seconds": 0.0,
        "seconds": 3540.0,
    }
    # Words that hashes, which are drawn anew, can't hold by chance.
    words = ("zoe", "staff", "course", "engine", "beefbeefbeef", "6f1e6f1e")
    assert not [word for word in words if word in done.out.casefold()]
    assert "1 lines read, 1 used" in done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--database (a record) or --trace"),
        (["--trace", "a", "--database", "b"], "one of them"),
        (["--trace", "a", "--rare", "0"], "--rare"),
        (["--trace", "a", "--shift-weeks", "1.5"], "--shift-weeks"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["records", "share", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_what_can_not_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(as_bytes([]))
    for arguments in (["--trace", str(empty)], ["--trace", "/no/such"], ["--database", str(tmp_path / "none.db")]):
        assert run(["records", "share", *arguments]) == 1
        done = capsys.readouterr()
        assert done.out == ""
        assert done.err.startswith("roost records: ")
