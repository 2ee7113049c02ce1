"""When a start begins and ends, and when its user waits, as columns of the table `start`.

Reports and the view count by these columns alone. So they mean the same starts and the same waits.
Times are in µs since 1970.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from roost_lab.recorder.store import schema

_START: Final = schema.start.c
# The pod's creation: exact where the watch told of it at once and the binding is exact, too.
# Otherwise in whole seconds.
exact_creation: Final = sa.func.coalesce(_START.told_us, _START.created_us)
# Whether a user asked for the start. Nobody waited for a server that seating asked for before a
# class: report/seated.py counts those.
is_by_user: Final = _START.seated_us.is_(None)
# Whether the hub gave the start up, or the pod went before its server answered.
is_failed: Final = sa.and_(_START.failed_us.is_not(None), _START.answered_us.is_(None))

# A start as reports have it. Where the hub's log says when the server answered, it lasts from the
# user's click until then; if the click isn't known, from the pod's creation. Otherwise it lasts
# from the pod's creation until the pod is ready. A failed start has no end.
start_from_us: Final = sa.case(
    (_START.answered_us.is_not(None), sa.func.coalesce(_START.asked_us, exact_creation)),
    else_=_START.created_us,
)
start_to_us: Final = sa.case(
    (is_failed, None), else_=sa.func.coalesce(_START.answered_us, _START.ready_us)
)

# When the hub's log says that the server answers or that the start failed.
logged_end_us: Final = sa.func.coalesce(_START.answered_us, _START.failed_us)
# A user's wait as the view has it. Without a log it ends when the containers run: the view shows
# pods as loading until then.
wait_to_us: Final = sa.func.coalesce(logged_end_us, _START.started_us)
# The end in a log is exact, so the beginning must be. Containers start in whole seconds: then the
# beginning is in whole seconds, too.
wait_from_us: Final = sa.case((logged_end_us.is_not(None), exact_creation), else_=_START.created_us)
