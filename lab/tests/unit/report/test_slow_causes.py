"""What explains a slow start, where its rows alone say it."""

from roost_lab.report.slow_causes import RecordedStart, StartSpans, cause_of
from roost_lab.units import US

NOTHING = RecordedStart(failures=[], phases=[], pulls=[], events=[])


def test_a_server_that_answered_late_did_so_after_its_containers_ran() -> None:
    start = StartSpans(
        "pod", bound_us=US, node_us=US, containers_us=2 * US, ready_us=0, answer_us=50 * US
    )
    assert cause_of(start, NOTHING) == "its server answered 50 s after its containers ran"


def test_nothing_explains_a_start_of_which_nothing_is_known() -> None:
    assert cause_of(StartSpans("pod", None, None, None, None, None), NOTHING) == ""
