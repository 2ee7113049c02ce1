"""`roost headroom --prometheus`: a hub's weeks from Prometheus' answers, before anything is
installed.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from roost.commands.prometheus import PODS, SERVERS
from roost_core.placement.headroom_history import UNSEEN, History, read_history
from tests.recorded_data import rows
from tests.unit.commands.test_headroom_command import LEARN, MONDAY, run_headroom, write_values

START = MONDAY - 21 * 86_400


def starts() -> Iterator[int]:
    """Somebody each hour; forty people on Mondays from 9:10 on. Each stays for 40 minutes."""
    for hour in range(21 * 24):
        yield START + 3600 * hour + 60
        if hour % 168 == 9:
            yield from (START + 3600 * hour + 600 + person for person in range(40))


def answer(
    series: Sequence[tuple[dict[str, str], Sequence[tuple[int, float]]]], kind: str = "matrix"
) -> str:
    result = [
        {"metric": metric, "values": [[at, str(n)] for at, n in values]}
        for metric, values in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}})


def pods() -> str:
    series = [
        (
            {"__name__": PODS, "namespace": "jhub", "pod": f"jupyter-{number}"},
            [(at, begin) for at in range(-(-begin // 300) * 300, begin + 2400, 300)],
        )
        for number, begin in enumerate(starts())
    ]
    hub = (
        {"__name__": PODS, "namespace": "jhub", "pod": "hub-1"},
        [(at, START) for at in range(START, MONDAY, 300)],
    )
    return answer([*series, hub])


def servers(seen: Callable[[int], bool] = lambda _at: True, namespace: str = "jhub") -> str:
    begins = [*starts()]
    levels = [
        (at, sum(begin <= at < begin + 2400 for begin in begins))
        for at in range(START, MONDAY, 60)
        if seen(at)
    ]
    return answer([({"__name__": SERVERS, "namespace": namespace}, levels)])


def learn(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, *more: str
) -> tuple[History, str]:
    """The history of the ConfigMap that is printed, and what is said."""
    (folder / "answer.json").write_text(text)
    values = write_values(folder, {"learn": LEARN})
    assert (
        run_headroom(
            "-f",
            values,
            "-n",
            "jhub",
            "--prometheus",
            str(folder / "answer.json"),
            "--config-map",
            *more,
        )
        == 0
    )
    said = capsys.readouterr()
    return read_history(yaml.safe_load(said.out)["data"]["default"]), said.err


def test_pods_and_running_servers_give_the_same_weeks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_pods, said = learn(tmp_path, capsys, pods())
    assert (
        "624 servers in 21.0 days, Mon 2026-09-14 00:00 UTC to Mon 2026-10-05 00:00 UTC\n" in said
    )
    assert "begins to the second, ends to 300 s" in said
    # Aggregations lose the name; without its uid, a pod that comes again is in the series of the
    # last one.
    assert learn(tmp_path, capsys, pods().replace(f'"__name__": "{PODS}", ', ""))[0] == by_pods
    again = [(START + 300, START), (START + 600, START), (START + 7500, START + 7200)]
    assert "2 servers in" in learn(tmp_path, capsys, answer([({"pod": "jupyter-a"}, again)]))[1]
    by_number, said = learn(tmp_path, capsys, servers())
    assert "from jupyterhub_running_servers, each 60 s" in said
    for week in (1, 2, 3):
        lecture = MONDAY // 60 - week * 10_080 + 9 * 60 + 9
        assert by_pods.growth(lecture, 6) == by_number.growth(lecture, 6) == 40
        assert by_pods.growth(lecture + 120, 6) == 0
        assert by_pods.at(lecture + 38) == by_number.at(lecture + 38) == 40
    assert (
        (by_pods.first, by_pods.end)
        == (by_number.first, by_number.end)
        == (START // 60, MONDAY // 60)
    )


def test_gaps_are_unknown_and_several_answers_are_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    middle, lost = START + 10 * 86_400, START + 12 * 86_400
    parts = (
        servers(lambda at: at < middle),
        servers(lambda at: at >= middle and not lost <= at < lost + 7200),
    )
    history, said = learn(tmp_path, capsys, "\n".join(parts))
    assert "1 gap, 2.0 hours in all: unknown" in said
    assert history.at(lost // 60 + 60) == UNSEEN
    assert history.seen_minutes == 21 * 1440 - 120
    # A sample stands until the next one, also where that is no whole minute later.
    samples = [(at, START) for at in range(START, MONDAY, 90)]
    odd, _ = learn(tmp_path, capsys, "\ufeff" + answer([({"pod": "jupyter-a"}, samples)]))
    assert odd.seen_minutes == 21 * 1440


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *rows("commands/prometheus-refused"),
        (
            servers(lambda at: at == START, "other"),
            "found those of other alone, expected some of namespace jhub",
        ),
        ("[" * 100_000, "expected Prometheus'"),
    ],
)
def test_other_answers_are_refused_and_nothing_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (tmp_path / "answer.json").write_text(text)
    given = ("-n", "jhub", "--prometheus", str(tmp_path / "answer.json"), "--config-map")
    assert run_headroom("-f", write_values(tmp_path, {"learn": LEARN}), *given) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert "Traceback" not in printed.err


def test_a_history_of_another_set_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body: dict[str, Any] = {"kind": "ConfigMap", "data": {"gpu": History().as_text()}}
    (tmp_path / "history.yaml").write_text(yaml.safe_dump(body))
    assert (
        run_headroom(
            "-f",
            write_values(tmp_path, {"learn": LEARN}),
            "--history",
            str(tmp_path / "history.yaml"),
        )
        == 2
    )
    assert "found data of gpu, expected of a set here: default" in capsys.readouterr().err


def user_series(name: str, begin: int, end: int) -> tuple[dict[str, str], list[tuple[int, float]]]:
    """A pod's values: one each five minutes from its creation on."""
    metric = {"__name__": PODS, "namespace": "jhub", "pod": name}
    return metric, [(at, begin) for at in range(-(-(begin + 1) // 300) * 300, end, 300)]


def test_an_answer_with_users_pods_alone_knows_hours_without_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Forty people from 9:00 to 12:00 on weekdays, as jupyter-.* finds them."""
    weekdays = [START + 86_400 * day for day in range(21) if day % 7 < 5]
    begins = [(at + 9 * 3600, user) for at in weekdays for user in range(40)]
    series = [
        user_series(f"jupyter-{user}", at + user * 10, at + user * 10 + 3 * 3600)
        for at, user in begins
    ]
    history, said = learn(tmp_path, capsys, answer(series))
    assert "600 servers in 18.1 days" in said
    assert "only pods jupyter-… are in it: hours without any count as without users" in said
    assert "unknown" not in said
    assert "thin" not in said
    sunday = START // 60 + 6 * 1440 + 600
    assert (history.at(sunday), history.at(sunday + 1440)) == (0, 40)
    # Others' pods tell what is a gap: those of the hub are gone with them.
    hub = ({"__name__": PODS, "namespace": "jhub", "pod": "hub-1"}, series[0][1])
    history, said = learn(tmp_path, capsys, answer([*series, hub]))
    assert "gaps" in said
    assert history.at(sunday) == UNSEEN


@pytest.mark.parametrize("seed", range(20))
def test_where_a_user_was_there_before_and_after_prometheus_did_not_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    rng = random.Random(seed)
    series = []
    for day in range(21):
        for number in range(rng.randint(0, 5)):
            begin = START + 86_400 * day + rng.randrange(80_000)
            series.append(user_series(f"jupyter-{day}-{number}", begin, begin + 7200))
    lost = START + rng.randrange(2, 18) * 86_400 + rng.randrange(0, 80_000, 300)
    until = lost + rng.randrange(1800, 7200, 300)
    # One who is there before and after.
    series.append(user_series("jupyter-stays", lost - 3600, until + 3600))
    seen = [
        (metric, [(at, n) for at, n in values if not lost <= at < until])
        for metric, values in series
    ]
    history, said = learn(tmp_path, capsys, answer([one for one in seen if one[1]]))
    assert "1 gap, " in said
    times = [at for _, values in seen for at, _ in values]
    for minute in range(min(times) // 60, max(times) // 60 + 5):
        is_lost = lost <= minute * 60 < until
        assert (history.at(minute) == UNSEEN) == is_lost, minute
