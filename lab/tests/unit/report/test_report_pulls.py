"""What the report's plot of pulls says of itself."""

from roost_lab.report.sections import parts
from roost_lab.report.subject import Report


def test_the_axis_of_pulls_over_time_says_how_long_a_step_is(report: Report) -> None:
    (figure,) = [
        figure
        for part in parts(report)
        for figure in part.figures
        if figure is not None and figure.key == "pulls_over_time"
    ]
    assert figure.layout["yaxis"]["title"] == "pulls in 1 min"
