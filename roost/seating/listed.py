"""Whom bookings seat, and in what order: listed names and groups, as far as the hub knows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from roost.seating.hub import AnswerError, Hub
from roost.seating.people import HubUser
from roost_core.release.bookings import Seated

# Groups, and users who have no server, are read again after so long.
_PEOPLE_SECONDS: Final = 30.0


class _ReadGroup(NamedTuple):
    """A group as it was read last."""

    # Unix time.
    at: float
    members: Sequence[str]


class ListedPeople:
    """The hub's users, and those of them whom bookings list. Belongs to one thread."""

    def __init__(self, hub: Hub, say: Callable[[str, str, str], None]) -> None:
        """say: told of each fault what it is about, what the log says of it ("": it is over), and
        what is shown, without users' names.
        """
        self._hub = hub
        self._say = say
        self._everyone: dict[str, HubUser] = {}
        self._everyone_at = float("-inf")
        # By name.
        self._groups: dict[str, _ReadGroup] = {}

    def everyone(self, now: float) -> Mapping[str, HubUser]:
        """All users of the hub, by name, read in the last half minute. Raises HubError."""
        if now - self._everyone_at >= _PEOPLE_SECONDS:
            everyone = list(self._hub.users())
            if not any(user.shows_servers for user in everyone):
                # A role that reaches nobody is a fault: what the hub answers to starts tells it.
                everyone = [replace(user, shows_servers=True) for user in everyone]
            self._everyone = {user.name: user for user in everyone}
            self._everyone_at = now
        return self._everyone

    def of_booking(
        self, now: float, booking: str, seated: Seated, came: Mapping[str, float]
    ) -> Sequence[str]:
        """A booking's people, in the order in which they are started. Raises HubError.

        came: seconds from a class's beginning to each person's coming, where it was seen.
        """
        known = self.everyone(now)
        # JupyterHub makes names lower case.
        names = [name if name in known else name.lower() for name in seated.users]
        if seated.group:
            names += self._members(now, booking, seated.group)
        unknown = sorted({name for name in names if name not in known})
        self._say(
            f"unknown of {booking}",
            f"{booking}: the hub doesn't know {some_names(unknown)}: skipped" if unknown else "",
            f"{booking}: {len(unknown)} listed names are no users of the hub: skipped",
        )
        outside = sorted(
            {name for name in names if name in known and not known[name].shows_servers}
        )
        no_right = f"{booking}: the token's role has no right to the servers of"
        self._say(
            f"outside of {booking}",
            f"{no_right} {some_names(outside)}: skipped" if outside else "",
            f"{no_right} {len(outside)} listed people: skipped",
        )
        return in_order(names, known, came)

    def _members(self, now: float, booking: str, group: str) -> Sequence[str]:
        """The users of a group, read in the last half minute. Raises HubError."""
        known = self._groups.get(group, _ReadGroup(float("-inf"), ()))
        if now - known.at >= _PEOPLE_SECONDS:
            known = _ReadGroup(now, self._read_members(booking, group, known.members))
            self._groups[group] = known
        return known.members

    def _read_members(self, booking: str, group: str, known: Sequence[str]) -> Sequence[str]:
        """The users of a group; where the hub refuses just now, those that are known.

        Raises HubError.
        """
        text = ""
        try:
            names = self._hub.group(group)
        except AnswerError as error:
            text = f"{booking}: group {group!r} can't be read now: {error}"
            names = list(known)
        else:
            if names is None:
                text = (
                    f"{booking}: the hub has no group {group!r}, or the token's role lacks"
                    " read:groups: nobody of it is seated"
                )
            elif not names:
                text = f"{booking}: group {group!r} is empty"
        self._say(f"group of {booking}", text, "")
        return names or ()


def in_order(
    names: Sequence[str], known: Mapping[str, HubUser], came: Mapping[str, float]
) -> Sequence[str]:
    """Order listed people as they came earlier; then who was last active comes first.

    came: seconds from a class's beginning to each one's coming, where it was seen.
    """

    def place(name: str) -> tuple[float, float, str]:
        user = known.get(name)
        active = (user.last_activity if user else None) or 0.0
        return (came.get(name, float("inf")), -active, name)

    return sorted(set(names), key=place)


def some_names(names: Sequence[str]) -> str:
    """A list of names, of which it shows three."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
