"""Files become attempts in order of time, whatever is in them, in bounded memory."""

import gzip
import itertools
import random
import statistics
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.tests.told import cases
from lab.tests.trace_lines import NOON, as_bytes, launch, read, reasons, recorded, stamp, write
from roost_lab.traces import files as trace_files
from roost_lab.traces import order as trace_order
from roost_lab.traces import reading as trace_reading
from roost_lab.traces import recorder as trace_recorder
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.traces.counts import MOST_REASONS, InputCounts, TraceError
from roost_lab.traces.files import UNREADABLE, read_lines
from roost_lab.traces.pushes import with_pushes
from roost_lab.traces.reading import open_trace
from tests.recorded_data import LAUNCHES

pytestmark = pytest.mark.slow


def test_minute_stamps_are_spread_inside_their_minute_in_the_order_of_the_file(
    tmp_path: Path,
) -> None:
    attempts, _ = read(
        write(tmp_path, *(launch(0, f"o/r{index}/m") for index in range(200)), launch(1))
    )
    offsets = [attempt.moment - NOON for attempt in attempts[:-1]]
    assert [attempt.image for attempt in attempts[:-1]] == [
        f"GitHub/o/r{index}/m" for index in range(200)
    ]
    assert 0 < offsets[0] <= offsets[-1] < 60 <= attempts[-1].moment - NOON
    assert statistics.fmean(offsets) == pytest.approx(30, abs=5)
    assert statistics.pstdev(offsets) == pytest.approx(60 / 12**0.5, abs=2.5)


def test_the_seed_decides_the_moments_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path, *(launch(index // 5) for index in range(50)))
    assert read(path, seed=1) == read(path, seed=1)
    one, other = read(path, seed=1)[0], read(path, seed=2)[0]
    assert [attempt[2:] for attempt in one] == [attempt[2:] for attempt in other]
    assert all(a.moment != b.moment for a, b in zip(one, other, strict=True))


def test_stamps_to_the_second_or_finer_are_not_moved_out_of_them(tmp_path: Path) -> None:
    seconds = write(
        tmp_path, *(launch() | {"timestamp": stamp(NOON + offset)} for offset in (0, 0, 7, 60, 61))
    )
    assert [int(attempt.moment - NOON) for attempt in read(seconds)[0]][2:] == [7, 60, 61]
    fine = write(tmp_path, recorded(0), recorded(0.000001), recorded(59.5))
    assert [attempt.moment - NOON for attempt in read(fine)[0]] == pytest.approx(
        [0, 0.000001, 59.5], abs=1e-6
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2019-05-22T12:00:30Z", 30), ("2019-05-22T14:00:30+02:00", 30), ("2019-05-22T12:00:30", 30)],
)
def test_times_are_utc_unless_they_say_otherwise(tmp_path: Path, text: str, seconds: int) -> None:
    attempts, _ = read(write(tmp_path, launch(timestamp=text)))
    assert int(attempts[0].moment - NOON) == seconds


def test_lines_a_little_out_of_order_are_sorted_and_late_ones_counted(tmp_path: Path) -> None:
    lines = [launch(minute, f"o/r{minute}/m") for minute in (20, 15, 25, 40, 1, 39)]
    attempts, counts = read(write(tmp_path, *lines), sort_window_seconds=600)
    assert [attempt.image for attempt in attempts] == [
        f"GitHub/o/r{minute}/m" for minute in (15, 20, 25, 39, 40)
    ]
    assert reasons(counts) == {trace_order.LATE: 1}
    assert counts.skipped[trace_order.LATE].line == 5


def test_a_trace_from_the_newest_to_the_oldest_is_an_error_in_the_end(tmp_path: Path) -> None:
    path = write(tmp_path, *(launch(minute) for minute in range(300, 0, -1)))
    with pytest.raises(TraceError, match=r"288 of 300 lines that come after later ones.*Sort it"):
        read(path)
    assert len(read(path, sort_window_seconds=300 * 60)[0]) == 300


def test_one_wrong_year_does_not_spoil_the_rest(tmp_path: Path) -> None:
    year = 366 * 24 * 60
    lines = [launch(-year), *(launch(minute) for minute in (0, 1, year, 2, 3)), launch(year)]
    attempts, counts = read(write(tmp_path, *lines))
    assert len(attempts) == 4
    assert reasons(counts) == {trace_order.LEAPT: 3}


def test_a_long_pause_is_believed_once_two_lines_agree(tmp_path: Path) -> None:
    year = 366 * 24 * 60
    attempts, counts = read(write(tmp_path, launch(0), launch(1), launch(year), launch(year + 1)))
    assert len(attempts) == 4
    assert not counts.skipped


def test_days_given_in_any_order_are_played_as_one_trace(tmp_path: Path) -> None:
    lines = [launch(600 * index // 7, f"o/r{index % 13}/m") for index in range(300)]
    whole = write(tmp_path, *lines)
    parts = [
        write(tmp_path, *lines[begin : begin + 60], name=f"part-{begin}")
        for begin in range(0, 300, 60)
    ]
    random.Random(1).shuffle(parts)
    assert read(*parts)[0] == read(whole)[0]


def test_a_file_named_twice_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, launch())
    with pytest.raises(TraceError, match="named twice"):
        open_trace([path, tmp_path / "." / "trace.jsonl"], seed=1, counts=InputCounts())


def test_blank_lines_among_launches_are_only_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes((b"\n" * 400_000).join(as_bytes([launch(minute)]) for minute in range(4)))
    attempts, counts = read(path)
    assert len(attempts) == 4
    assert reasons(counts) == {"empty": 1_200_000}


@pytest.mark.parametrize(
    ("line", "reason"), [(b"{}\n", "`schema` is missing"), (b" \r\n", "empty")]
)
def test_lines_without_end_that_are_no_launches_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes, reason: str
) -> None:
    monkeypatch.setattr(trace_reading, "MOST_USELESS_LINES", 1000)
    path = tmp_path / "trace.jsonl"
    path.write_bytes(as_bytes([launch()]) + line * 1000 + as_bytes([launch(1)]))
    assert len(read(path)[0]) == 2
    path.write_bytes(as_bytes([launch()]) + line * 1001 + as_bytes([launch(1)]))
    with pytest.raises(
        TraceError, match=f"1000 lines in a row that are no launches; the last: {reason}"
    ) as caught:
        read(path)
    assert caught.value.line == 1002


def test_a_gzip_file_is_told_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    plain = as_bytes(launch(minute) for minute in range(50))
    path.write_bytes(gzip.compress(plain[:1000]) + gzip.compress(plain[1000:]) + b"\0" * 512)
    attempts, counts = read(path)
    assert len(attempts) == 50
    assert not counts.skipped


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda packed: packed[: len(packed) // 2], "the compressed data breaks off here"),
        (lambda packed: packed[:-4], "the compressed data breaks off here"),
        (lambda packed: packed[:-8] + b"\xff" * 8, "the compressed data is damaged from here on"),
        (lambda packed: packed + b"behind", "bytes behind the compressed data that aren't gzip's"),
    ],
)
def test_damaged_gzip_gives_what_came_before_and_says_so(
    tmp_path: Path, spoil: Any, reason: str
) -> None:
    path = tmp_path / "trace.jsonl.gz"
    lines = [launch(minute // 3, f"o/r{minute * 7919 % 1000}/m") for minute in range(3000)]
    path.write_bytes(spoil(gzip.compress(as_bytes(lines))))
    attempts, counts = read(path)
    assert len(attempts) > 1000
    assert reasons(counts) == {reason: 1}
    assert counts.skipped[reason].line == len(attempts) + 1


def test_gzip_of_which_more_comes_than_of_any_text_gives_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    plain = as_bytes([launch(1, "o/r/m")]) + b"x" * 2**26
    path.write_bytes(gzip.compress(plain))
    *_, last = read_lines(path)
    assert "more than 100 times as much" in UNREADABLE[last]
    attempts, _ = read(path)
    assert len(attempts) == 1


@pytest.mark.parametrize(("content", "found"), cases("traces", "nothing"))
def test_a_file_with_nothing_usable_is_an_error_with_a_fix(
    tmp_path: Path, content: bytes, found: str
) -> None:
    path = tmp_path / "trace"
    path.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.found == found
    assert caught.value.fix
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_opened_are_errors_at_once(tmp_path: Path) -> None:
    for paths in ([tmp_path / "absent"], [tmp_path]):
        with pytest.raises(TraceError):
            open_trace(paths, seed=1, counts=InputCounts())


def test_the_file_is_never_held_in_memory(tmp_path: Path) -> None:
    def peak(minutes: int) -> int:
        path = tmp_path / f"{minutes}.jsonl"
        with path.open("wb") as file:
            for minute in range(minutes):
                file.write(as_bytes([launch(minute, f"o/r{minute % 50}/m")] * 5))
        tracemalloc.start()
        for _ in open_trace([path], seed=1, counts=InputCounts()):
            pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(1200) < 1.2 * peak(300) + 100_000


@given(content=st.binary(max_size=400), packed=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_raise_anything_but_a_trace_error(
    tmp_path: Path, content: bytes, packed: bool
) -> None:
    path = tmp_path / "any"
    path.write_bytes(gzip.compress(content)[: len(content) + 10] if packed else content)
    counts = InputCounts()
    try:
        attempts = list(open_trace([path], seed=1, counts=counts))
    except TraceError:
        return
    assert counts.lines == counts.used + counts.skipped_lines
    assert attempts


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
_TIMES = st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)


def test_of_many_files_in_a_row_few_are_open_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [
        write(tmp_path, *map(launch, range(day * 1440, day * 1440 + 90, 15)), name=f"{day}")
        for day in range(30)
    ]
    now_open: set[Path] = set()
    most, lines_of = 0, trace_files.read_lines

    def counted(path: Path) -> Iterator[bytes]:
        nonlocal most
        now_open.add(path)
        most = max(most, len(now_open))
        try:
            yield from lines_of(path)
        finally:
            now_open.discard(path)

    monkeypatch.setattr(trace_reading, "read_lines", counted)
    moments = [one.moment for one in open_trace(paths[::-1], seed=1, counts=InputCounts())]
    assert moments == sorted(moments)
    assert len(moments) == 180
    assert most <= 2


@st.composite
def altered_lines(draw: st.DrawFn) -> dict[str, Any]:
    """A good line of some kind with a few fields replaced by anything."""
    sniffed = {
        "object": "Pod",
        "name": "x",
        "endpoint": "preStop",
        "timestamp": "2024-04-23 19:51:07 +0000 UTC",
    }
    line: dict[str, Any] = dict(
        draw(st.sampled_from([launch(), launch(version=6, ref="x"), recorded(), sniffed]))
    )
    for key in draw(st.lists(st.sampled_from([*line, "extra", "event", "node"]), max_size=3)):
        line[key] = draw(_TIMES if key == "timestamp" and draw(st.booleans()) else _JSON)
    return line


@given(lines=st.lists(altered_lines(), max_size=12), window=st.floats(0, 1e6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_fields_hold_the_counts_add_up(
    tmp_path: Path, lines: list[dict[str, Any]], window: float
) -> None:
    counts = InputCounts()
    paths: Sequence[Path] = [
        write(tmp_path, *lines[:6], name="one"),
        write(tmp_path, *lines[6:], name="other"),
    ]
    try:
        attempts = list(open_trace(paths, seed=1, counts=counts, sort_window_seconds=window))
    except TraceError:
        attempts = []
    assert counts.lines == len(lines) == counts.used + counts.skipped_lines
    assert counts.used == len(attempts)
    assert all(one.moment <= other.moment for one, other in itertools.pairwise(attempts))


def test_the_public_window_of_may_2019_is_read_whole() -> None:
    attempts, counts = read(LAUNCHES)
    assert len(attempts) == counts.lines == 130_729
    assert len({attempt.image for attempt in attempts}) == 3008
    providers = Counter(attempt.image.split("/", 1)[0] for attempt in attempts)
    assert providers == {"GitHub": 129_725, "GitLab": 507, "Gist": 296, "Git": 201}


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_every_version_of_the_archive_is_read(tmp_path: Path, version: int) -> None:
    attempts, counts = read(
        write(tmp_path, launch(version=version, origin="gke.mybinder.org", ref="abc"))
    )
    assert attempts[0].repository == "GitHub/ada/engine"
    assert attempts[0].image == (
        "GitHub/ada/engine@abc" if version >= 4 else "GitHub/ada/engine/master"
    )
    assert counts.formats == {f"binderhub.jupyter.org/launch {version}": 1}
    assert not counts.notes


def test_a_branch_and_its_commit_are_one_image_once_the_trace_resolves_them(tmp_path: Path) -> None:
    lines = [
        launch(version=4, spec=f"ada/engine/{ref}", ref="0" * 40) for ref in ("master", "0" * 40)
    ]
    attempts, _ = read(write(tmp_path, *lines, launch(spec="ada/engine/" + "0" * 40)))
    assert {attempt.image for attempt in attempts} == {"GitHub/ada/engine@" + "0" * 40}


def test_github_names_are_folded_for_the_repository_and_kept_for_the_image(tmp_path: Path) -> None:
    attempts, _ = read(
        write(tmp_path, launch(spec="Ada/Engine.git/master"), launch(spec="ada/engine/master"))
    )
    assert {attempt.repository for attempt in attempts} == {"GitHub/ada/engine"}
    assert [attempt.image for attempt in attempts] == [
        "GitHub/Ada/Engine.git/master",
        "GitHub/ada/engine/master",
    ]


@pytest.mark.parametrize(("provider", "spec", "repository"), cases("traces", "repositories"))
def test_repositories_of_each_provider(
    tmp_path: Path, provider: str, spec: str, repository: str
) -> None:
    attempts, _ = read(write(tmp_path, launch(provider=provider, spec=spec)))
    assert attempts[0].repository == repository


def test_a_recorded_launch_keeps_its_time_sizes_and_length(tmp_path: Path) -> None:
    attempts, _ = read(write(tmp_path, recorded(0.25)))
    image = "registry.example/ada-engine:" + "0" * 40
    assert attempts == [
        Attempt(
            0,
            NOON + 0.25,
            "https://github.com/ada/engine",
            image,
            1_500_000_000,
            900.5,
            10,
            550_000_000,
            "hub",
        )
    ]


def test_what_the_recorder_does_not_know_is_left_to_be_drawn(tmp_path: Path) -> None:
    unknown = recorded(
        repository="", ref="", image_bytes=None, seconds=None, cpu_millicores=0, memory_bytes=0
    )
    attempts, counts = read(write(tmp_path, unknown))
    assert attempts[0] == (
        0,
        attempts[0].moment,
        "",
        unknown["image"],
        None,
        None,
        None,
        None,
        "hub",
    )
    assert not counts.notes


def test_what_the_recorder_exports_is_read() -> None:
    from roost_lab.recorder.exporting import exports  # noqa: PLC0415 - the twin

    assert exports.LAUNCH_SCHEMA == trace_recorder.SCHEMA
    assert max(trace_recorder.VERSIONS) == exports.LAUNCH_VERSION


@pytest.mark.parametrize(
    ("ready_seconds", "seconds", "session"),
    [(0, 5, 5), (2.5, 2.5, 0), (3, 2, 0), (None, 5, None), (2, None, None)],
)
def test_a_recorded_session_lasts_from_ready_to_gone(
    tmp_path: Path, ready_seconds: float | None, seconds: float | None, session: float | None
) -> None:
    attempts, counts = read(write(tmp_path, recorded(ready_seconds=ready_seconds, seconds=seconds)))
    assert [attempt.session_seconds for attempt in attempts] == [session]
    assert not counts.notes


@pytest.mark.parametrize(
    "key", ["image_bytes", "cpu_millicores", "memory_bytes", "seconds", "ready_seconds"]
)
@pytest.mark.parametrize("found", [-1, True, "many", 1e300, []])
def test_impossible_amounts_are_noted_and_drawn_instead(
    tmp_path: Path, key: str, found: object
) -> None:
    attempts, counts = read(write(tmp_path, recorded() | {key: found}))
    assert [attempts[0][4], attempts[0][6], attempts[0][7], attempts[0][5]].count(None) == 1
    assert [what for what in counts.notes if key in what]


HUGE = [
    ("[" * 100_000, "not valid JSON"),
    (launch(spec="x" * 5000), "`spec` isn't a text of 1 to 4096 characters"),
    ("x" * (trace_files.MOST_LINE_BYTES + 1), f"longer than {trace_files.MOST_LINE_BYTES} bytes"),
]


@pytest.mark.parametrize(("line", "reason"), [*cases("traces", "unused"), *HUGE])
def test_a_line_that_cannot_be_used_is_counted_with_reason_and_place(
    tmp_path: Path, line: dict[str, Any] | str, reason: str
) -> None:
    if isinstance(line, dict) and len(line) == 1:
        ((kind, changed),) = line.items()
        line = (launch() if kind == "launch" else recorded()) | changed
    path = write(tmp_path, launch(), line, launch(1))
    attempts, counts = read(path)
    assert len(attempts) == 2
    assert reasons(counts) == {reason: 1}
    assert counts.skipped[reason].place == f"{path}:2"


def test_unknown_providers_are_used_and_noted_and_unknown_fields_are_left_alone(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, launch(mood="good", ref="not of version 2"), launch(provider="Forge"))
    attempts, counts = read(path)
    assert [attempt.image for attempt in attempts] == [
        "GitHub/ada/engine/master",
        "Forge/ada/engine/master",
    ]
    assert sorted(counts.notes) == ['provider "Forge" is unknown: its names are taken as they are']


def test_however_many_reasons_there_are_memory_is_bounded(tmp_path: Path) -> None:
    _, counts = read(
        write(tmp_path, launch(), *(launch(schema=f"s{index}") for index in range(1000)))
    )
    assert (len(counts.skipped), counts.skipped_lines) == (MOST_REASONS + 1, 1000)


def attempts_of(days: int, repositories: int = 200) -> list[Attempt]:
    return [
        Attempt(number, NOON + hour * 3600, f"GitHub/o/{one}", f"GitHub/o/{one}/master")
        for number, (hour, one) in enumerate(
            (h, r) for h in range(0, days * 24, 6) for r in range(repositories)
        )
    ]


def test_pushes_make_new_images_at_their_rate() -> None:
    attempts = attempts_of(20)
    pushed = list(with_pushes(attempts, Chance(1), 0.1))
    images = {attempt.image for attempt in pushed}
    # 200 repositories, 19.75 days from the first launch to the last.
    assert len(images) == pytest.approx(200 + 200 * 19.75 * 0.1, rel=0.12)
    assert [attempt[:3] for attempt in pushed] == [attempt[:3] for attempt in attempts]


def test_an_image_never_comes_back_once_its_repository_was_pushed_to() -> None:
    seen: dict[str, list[str]] = {}
    for attempt in with_pushes(attempts_of(20), Chance(1), 0.5):
        images = seen.setdefault(attempt.repository, [])
        if not images or images[-1] != attempt.image:
            images.append(attempt.image)
    assert all(len(set(images)) == len(images) for images in seen.values())


@pytest.mark.parametrize("image", ["GitHub/o/r@" + "a" * 40, "Zenodo/10.5281/zenodo.1"])
def test_images_that_are_fixed_are_not_pushed_to(image: str) -> None:
    attempts = [attempt._replace(image=image) for attempt in attempts_of(5, 3)]
    assert list(with_pushes(attempts, Chance(1), 1.0)) == attempts


def test_no_pushes_change_nothing() -> None:
    attempts = attempts_of(2, 3)
    assert list(with_pushes(attempts, Chance(1), 0.0)) == attempts
