"""Hold what happens to people with Roost against the same without it, and against what the spawn
page showed them.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from roost.controllers.start_notices import texts
from tests.harness.hub.hub import RealHub
from tests.harness.hub.people import Visit
from tests.harness.hub.user_pods import UserPods
from tests.stack import Stack

# Promise 9: nobody is later than this because of Roost.
LATE_SECONDS: Final = 30.0
# The page gets each notice within 2 s; an Event's time is of whole seconds.
NOTICE_SECONDS: Final = 3.0
# The words of each of Roost's notices.
_SENTENCES: Final = (
    text for name, text in vars(texts).items() if name.isupper() and name[0] != "_"
)
NOTICES: Final = "|".join(re.sub(r"\\{.*?\\}", ".+", re.escape(text)) for text in _SENTENCES)

Story = Callable[[RealHub], list[Visit]]


@dataclass(frozen=True)
class Judge:
    """Lets a story happen without Roost and with it; nobody with Roost is worse off."""

    pods: UserPods
    roost: Stack
    plain: RealHub
    steered: RealHub
    notice_seconds: float = NOTICE_SECONDS

    def __call__(
        self, story: Story, *, late_seconds: float = LATE_SECONDS, is_patched: bool = True
    ) -> list[Visit]:
        """The visits with Roost.

        late_seconds: math.inf where something restarts, which hits the twins' starts at other
        moments. is_patched: whether each user's pod names Roost's scheduler, or none does.
        """
        twins = []
        self.pods.schedulers.clear()
        for hub in (self.plain, self.steered):
            self.pods.forget_images()
            twins.append(story(hub))
            hub.stop_servers()
        name = self.roost.scheduler_name("user") if is_patched else "default-scheduler"
        named = {
            (namespace, scheduler)
            for (namespace, _), scheduler in self.pods.schedulers.copy().items()
        }
        assert named == {
            (self.plain.namespace, "default-scheduler"),
            (self.steered.namespace, name),
        }, named
        without, visits = twins
        for twin, visit in zip(without, visits, strict=True):
            assert not visit.fault, visit
            assert bool(visit.failure) <= bool(twin.failure or twin.fault), (twin, visit)
            if twin.answered_at:
                assert visit.seconds <= twin.seconds + late_seconds, (twin, visit)
            assert max(notice_lags(visit), default=0) <= self.notice_seconds, visit
        # Where no page broke off, one that was written in time is on it.
        people = {f"jupyter-{visit.user}": visit for visit in visits if late_seconds < math.inf}
        for event in self.roost.cluster.api.list(
            f"/api/v1/namespaces/{self.steered.namespace}/events"
        ):
            if (one := people.get(event["involvedObject"]["name"])) and re.match(
                NOTICES, event["message"]
            ):
                written = datetime.fromisoformat(
                    event["lastTimestamp"] or event["eventTime"]
                ).timestamp()
                is_late = written + self.notice_seconds > (one.ready_at or one.shown[-1][0])
                assert is_late or any(event["message"] in line for _, line in one.shown), (
                    event,
                    one,
                )
        return visits


def told(visit: Visit, words: str) -> list[tuple[float, float]]:
    """When each Event with such words was written, and when the page first showed it."""
    first: dict[str, float] = {}
    for at, line in visit.shown:
        first.setdefault(line, at)
    found = [(re.match(rf"(\S+)Z \[Normal\] (?:{words})", line), at) for line, at in first.items()]
    return [
        (datetime.fromisoformat(f"{line[1]}+00:00").timestamp(), at) for line, at in found if line
    ]


def notice_lags(visit: Visit) -> list[float]:
    """From each of Roost's notices until the page showed it, at most a second too much.

    A page that broke off shows what it missed once it is loaded again.
    """
    events = told(visit, NOTICES)
    return [
        shown - max([written, *(at for at in visit.pages if at <= shown)])
        for written, shown in events
    ]
