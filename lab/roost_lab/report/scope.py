"""Which pods a report is about: all, or those of one hub, class and image."""

from __future__ import annotations

from typing import Final, NamedTuple

import sqlalchemy as sa

from roost_lab.recorder.store import schema

# Values that an error lists at most.
_MOST_LISTED: Final = 10


class ScopeError(Exception):
    """Nothing in the record fits an option; the text names what would."""


class Scope(NamedTuple):
    """What a report's pods have in common; None: anything."""

    hub: str | None = None
    pod_class: str | None = None
    image: str | None = None

    @property
    def chosen(self) -> dict[str, str]:
        """Option -> the value that was asked for."""
        options = {"hub": self.hub, "class": self.pod_class, "image": self.image}
        return {option: value for option, value in options.items() if value is not None}

    def has(self, pod_uid: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        """Whether the pod of that uid is one of them. A pod that the record doesn't know is so only if all are."""
        if not self.chosen:
            return sa.true()
        pod = schema.pod.c
        return pod_uid.in_(sa.select(pod.uid).where(*(_COLUMNS[name] == value for name, value in self.chosen.items())))

    def check(self, connection: sa.Connection) -> None:
        """Raise ScopeError if the record, at any time, has no pod with one of the values."""
        for option, value in self.chosen.items():
            column = _COLUMNS[option]
            if connection.execute(sa.select(1).where(column == value).limit(1)).first() is None:
                query = sa.select(column).where(column != "").group_by(column).order_by(sa.func.count().desc(), column)
                known = list(connection.execute(query.limit(_MOST_LISTED + 1)).scalars())
                listed = ", ".join(known[:_MOST_LISTED]) + (" and others" if len(known) > _MOST_LISTED else "")
                expected = f"expected one that pods of the record have: {listed or 'there is none'}"
                raise ScopeError(f"--{option}: found {value!r}, {expected}")


EVERY_POD: Final = Scope()
_COLUMNS: Final = {"hub": schema.pod.c.hub, "class": schema.pod.c.pod_class, "image": schema.pod.c.image}
