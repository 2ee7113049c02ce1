"""When a start begins and ends, and whom it keeps waiting, as columns of the table `start`.

Reports and view count by these alone, so that they mean the same starts and the same waits.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from roost_lab.recorder.store import schema

_START: Final = schema.start.c
# When the watch told of it, where that is known to be exact and the binding is, too.
exact_creation: Final = sa.func.coalesce(_START.told_us, _START.created_us)
# Of a start that seating asked for before a class nobody waited: report/seated.py counts those.
is_peoples: Final = _START.seated_us.is_(None)
# Its hub gave it up, or it went before.
is_failed: Final = sa.and_(_START.failed_us.is_not(None), _START.answered_us.is_(None))

# A whole start: from the user's click until the server answers, where the hub's log tells; else
# what its pod tells, until it is ready. One that failed has no end.
whole_from: Final = sa.case(
    (_START.answered_us.is_not(None), sa.func.coalesce(_START.asked_us, exact_creation)),
    else_=_START.created_us,
)
whole_to: Final = sa.case(
    (is_failed, None), else_=sa.func.coalesce(_START.answered_us, _START.ready_us)
)

# A user's wait, as the view has it: it ends when the hub's log says that the server answers or
# that the start failed.
told_end: Final = sa.func.coalesce(_START.answered_us, _START.failed_us)
# Where no log tells, it ends when the containers run: pods of the view load until then.
wait_to: Final = sa.func.coalesce(told_end, _START.started_us)
# Containers start in whole seconds, as pods are created: hubs' logs are exact.
wait_from: Final = sa.case((told_end.is_not(None), exact_creation), else_=_START.created_us)
