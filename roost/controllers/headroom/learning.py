"""Learn how many placeholders a set needs: count its users each minute, keep that, and forecast.

The history is kept in a ConfigMap, so that it survives restarts. It is read only when it changes
there. While no history can be read, the set has the placeholders that its values say. A wrong
forecast can't ask for more than `learn.max`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from roost.controllers.contract.actions import Action, KeepHistory, Notice
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.headroom.accounting import (
    Accounting,
    Seats,
    after_minute,
    count_since_last_look,
    pulls_seen,
)
from roost.controllers.headroom.boot_clock import BootClock
from roost.controllers.headroom.pool_view import PoolView, seats_of_others, see_pool
from roost.controllers.headroom.set_of_user import SetOfUser
from roost.controllers.headroom.settings import HeadroomSettings
from roost_core.placement.headroom_cut import cut_classes
from roost_core.placement.headroom_forecast import (
    STEADY_STEP,
    WAVE_MINUTES,
    Forecast,
    Outlook,
    Rises,
    forecast_need,
    look_ahead,
    steady_needs,
)
from roost_core.placement.headroom_history import (
    DAY_MINUTES,
    HOUR_MINUTES,
    KEPT_BOOTS,
    KEPT_PULLS,
    MINUTE_SECONDS,
    MOST_TEXT,
    UNSEEN,
    UNUSABLE_SUFFIX,
    History,
    HistoryError,
    read_history,
    share_of_text,
)
from roost_core.placement.headroom_windows import local_time
from roost_core.placement.headroom_worth import Ceiling, Needs, Worth, worth_of
from roost_core.release.placeholder_sets import LearnSettings, PlaceholderSet, others_on_same_nodes

WEEK_MINUTES: Final = 7 * DAY_MINUTES
# The most classes that one Event names.
MOST_TOLD: Final = 5


class SteadyNeeds(NamedTuple):
    """What `steady_needs` says, kept for STEADY_STEP minutes."""

    # The number of the step since 1970: minutes divided by STEADY_STEP.
    step: int
    # Of the hour before, and of the hour after.
    needs: tuple[Needs, Needs]


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known of one set. Minutes, hours and days are numbered since 1970."""

    # When the first plan was made, in steady seconds.
    since: float
    history: History = field(default_factory=History)
    # The text in the ConfigMap that `history` began with; "": none was read.
    taken_in: str = ""
    # A later text, which this replica wrote. The watch may show it late, or never. "": none is
    # awaited.
    written: str = ""
    # Whether the ConfigMap could be read once.
    is_loaded: bool = False
    # A text in the ConfigMap that couldn't be read; "": none.
    unusable: str = ""
    # The minute of the last plan; None: there was none.
    minute: int | None = None
    # What the last plan saw.
    view: PoolView | None = None
    # What earlier days say of the present minute; None: there are too few days.
    outlook: Outlook | None = None
    # The seats to have now; None: there are too few days.
    forecast: Forecast | None = None
    # The seats that would be forecast without the ceiling.
    seats_without_ceiling: int = 0
    # The day of the last Event about the ceiling; None: there was none.
    told_on: int | None = None
    # People of the coming week for whom the ceiling leaves no seat.
    cut_people: int = 0
    # The hour in which they were counted; None: the ceiling cuts nothing.
    counted_on: int | None = None
    # None: there was no plan yet.
    boot_clock: BootClock | None = None
    accounting: Accounting = field(default_factory=Accounting)
    # Kept from minute to minute; None: not worked out yet.
    rises: Rises | None = None
    # Kept from minute to minute; None: not worked out yet.
    steady: SteadyNeeds | None = None


def observe(
    placeholder_set: PlaceholderSet,
    learn: LearnSettings,
    learned: Learned,
    snapshot: Snapshot,
    settings: HeadroomSettings,
    *,
    kept_seats: Mapping[str, int],
    set_of_user: SetOfUser,
    now: Moment,
) -> tuple[Learned, list[Action]]:
    """Take in what is seen now, and forecast. Return what is known then, and what is to be written.

    If the ConfigMap has a new history, it is taken in first. Once an hour, the history is written
    there. kept_seats: placeholders of each set that windows, bookings and the values would keep
    without learning.
    """
    name = placeholder_set.name
    minute = int(now.wall // MINUTE_SECONDS)
    stored = (snapshot.histories or {}).get(name, "")
    learned, actions = _with_stored(
        placeholder_set, learn, learned, snapshot, settings, minute=minute
    )
    others = others_on_same_nodes(placeholder_set, settings.sets)
    view = see_pool(
        placeholder_set, snapshot, settings, learned.view, set_of_user.counts_for, others=others
    )
    learned = _with_boots(learned, view, now.wall)
    learned = _with_pulls(learned, view, now.wall)
    if view.per_node and view.per_node != learned.history.per_node:
        learned = replace(learned, history=replace(learned.history, per_node=view.per_node))
    kept_by_all = kept_seats[name] + round(
        seats_of_others(kept_seats, placeholder_set, others, view)
    )
    accounting = count_since_last_look(
        learned.accounting, view, learned.history, kept_by_all, now.wall
    )
    learned = replace(learned, accounting=accounting, view=view)
    # Compared with the last plan, not with the history: after a clock was set back, the history has
    # later minutes than the present.
    is_new_minute = minute != learned.minute
    if is_new_minute:
        learned = _with_minute(learned, learn, minute, view)
    learned = _with_forecast(learned, learn, minute, view)
    stateful_set = snapshot.stateful_sets.get(placeholder_set.stateful_set)
    if is_new_minute and stateful_set is not None:
        tell = partial(Notice.on_set, snapshot.namespace, stateful_set)
        learned, notices = _tell_of_ceiling(name, learn, learned, minute, tell)
        actions += notices
    is_new_hour = is_new_minute and minute % HOUR_MINUTES == 0
    # Until the stored history has been read, it is longer than what would be written.
    if is_new_hour and learned.is_loaded and settings.history_name:
        text = learned.history.as_text(name, _most_text(learned, snapshot, settings))
        data = {name: text}
        if learned.unusable:
            # It is kept under another key, so that somebody may mend it.
            data[f"{name}{UNUSABLE_SUFFIX}"] = learned.unusable
        actions.append(
            KeepHistory(name=settings.history_name, data=data, why=f"one more hour of set {name}")
        )
        learned = replace(learned, taken_in=stored, written=text)
    return learned, actions


def _most_text(learned: Learned, snapshot: Snapshot, settings: HeadroomSettings) -> int:
    """How long a set's text may be, in characters.

    The ConfigMap also holds the texts of the other sets that learn, and texts that nobody reads any
    more, as those of former sets.
    """
    names = {
        placeholder_set.name
        for placeholder_set in settings.sets
        if placeholder_set.learn is not None
    }
    length_of_others = sum(
        len(key) + len(text) for key, text in (snapshot.histories or {}).items() if key not in names
    )
    return share_of_text(len(names), length_of_others + len(learned.unusable))


def _with_stored(
    placeholder_set: PlaceholderSet,
    learn: LearnSettings,
    learned: Learned,
    snapshot: Snapshot,
    settings: HeadroomSettings,
    *,
    minute: int,
) -> tuple[Learned, list[Action]]:
    """Take in the ConfigMap's history, if it is new. If it can't be read, an Event says why."""
    name = placeholder_set.name
    actions: list[Action] = []
    stored = (snapshot.histories or {}).get(name, "")
    if stored and stored not in (learned.taken_in, learned.written):
        try:
            history = read_history(stored, minute, name)
            learned = replace(learned, unusable="")
        except HistoryError as error:
            history = learned.history
            learned = replace(learned, unusable=stored[:MOST_TEXT])
            message = (
                f"What set {name} learned can't be used, and what was learned since applies, or the"
                f" values: ConfigMap {settings.history_name}, key {name}: {error}."
            )
            stateful_set = snapshot.stateful_sets.get(placeholder_set.stateful_set)
            if stateful_set is not None:
                tell = partial(Notice.on_set, snapshot.namespace, stateful_set, warning=True)
                actions.append(tell("HeadroomHistoryUnusable", message))
        # What was worked out from the old history is worked out again.
        learned = replace(
            learned,
            history=history,
            outlook=look_ahead(history, minute, learn.time_zone),
            taken_in=stored,
            written="",
            rises=None,
            steady=None,
        )
    elif stored and stored == learned.written:
        # The watch shows what was written. If it shows the older text again, that text is new.
        learned = replace(learned, taken_in=stored, written="")
    is_loaded = learned.is_loaded or snapshot.histories is not None
    return replace(learned, is_loaded=is_loaded), actions


def worth_now(learn: LearnSettings, learned: Learned) -> tuple[Worth, Worth]:
    """What waiting is worth now: with the ceiling, and without it."""
    history = learned.history
    idle_seconds = learned.accounting.idle_seconds
    uncut = worth_of(
        learn.waiting_worth,
        history.per_node,
        history.ahead_minutes,
        idle_seconds,
        seats_per_person=history.seats_per_person,
    )
    return ceiling_of(learn, learned).cut(uncut), uncut


def ceiling_of(learn: LearnSettings, learned: Learned) -> Ceiling:
    """What learning has cost in the last thirty days, and what it may cost."""
    return Ceiling.of(
        learned.history.account,
        waiting_hour_price=learn.waiting_hour_price,
        node_hour_price=learn.node_hour_price,
        monthly_ceiling=learn.monthly_ceiling,
    )


def _with_forecast(learned: Learned, learn: LearnSettings, minute: int, view: PoolView) -> Learned:
    """Forecast the seats to have now, with the ceiling and without it."""
    outlook = learned.outlook
    history = learned.history
    if outlook is None:
        return replace(learned, forecast=None, seats_without_ceiling=0)
    level_before = history.at(minute - WAVE_MINUTES)
    came = None if level_before == UNSEEN else view.level - level_before
    worth, worth_without_ceiling = worth_now(learn, learned)
    forecast = forecast_need(outlook, came, worth, view.room)
    without_ceiling = forecast
    if worth != worth_without_ceiling:
        without_ceiling = forecast_need(outlook, came, worth_without_ceiling, view.room)
    return replace(learned, forecast=forecast, seats_without_ceiling=without_ceiling.worth)


def _tell_of_ceiling(
    name: str, learn: LearnSettings, learned: Learned, minute: int, tell: Callable[..., Notice]
) -> tuple[Learned, list[Action]]:
    """Count how many people of the coming week will wait because of the ceiling: once an hour.

    Once a day, an Event names their classes, and says what room for all would cost.
    """
    history = learned.history
    worth, worth_without_ceiling = worth_now(learn, learned)
    hour = minute // HOUR_MINUTES
    day = minute // DAY_MINUTES
    if worth == worth_without_ceiling:
        return replace(learned, cut_people=0, counted_on=None), []
    if hour == learned.counted_on:
        return learned, []
    cut = list(
        cut_classes(
            history, minute, WEEK_MINUTES, learn.time_zone, worth=worth, uncut=worth_without_ceiling
        )
    )
    cut_people = sum(cut_class.missing for cut_class in cut)
    learned = replace(learned, counted_on=hour, cut_people=cut_people)
    if not cut or day == learned.told_on:
        return learned, []
    learned = replace(learned, told_on=day)
    ceiling = ceiling_of(learn, learned)
    cost = sum(cut_class.node_hours for cut_class in cut)
    first_classes = ", ".join(
        f"{local_time(cut_class.minute * 60.0, learn.time_zone)}"
        f" ({cut_class.people} people, seats for {cut_class.seats})"
        for cut_class in cut[:MOST_TOLD]
    )
    more = f" and {len(cut) - MOST_TOLD} more" if len(cut) > MOST_TOLD else ""
    message = (
        f"The ceiling of set {name} (prices): {ceiling.spent:.2f} of {ceiling.most:.2f} are spent"
        f" in thirty days, so people of these classes will wait: {first_classes}{more}. Room for"
        f" all costs about {cost:.1f} node-hours ({cost * learn.node_hour_price:.2f})."
    )
    return learned, [tell("HeadroomCeiling", message, warning=True)]


def _with_minute(learned: Learned, learn: LearnSettings, minute: int, view: PoolView) -> Learned:
    """Take in a minute: how many users there are, and what learning saved and cost in it."""
    forecast = 0 if learned.forecast is None else learned.forecast.worth
    seats = Seats(
        kept=min(forecast, learn.max),
        without_ceiling=min(learned.seats_without_ceiling, learn.max),
        without_limits=learned.seats_without_ceiling,
    )
    accounting, account = after_minute(
        learned.accounting, learned.history.account, minute, seats, learn.time_zone
    )
    # Only users on nodes: a pod that waits may ask for more than any node has.
    placed = [user.size for user in view.users.values() if user.node]
    history = learned.history.with_level(minute, view.level).with_people(placed)
    history = replace(history, account=account)
    rises = learned.rises
    if rises is None or not rises.fits(history):
        rises = Rises(history)
    step = minute // STEADY_STEP
    steady = learned.steady
    if steady is None or steady.step != step:
        steady = SteadyNeeds(step, steady_needs(history, minute, learn.time_zone, rises))
    outlook = look_ahead(history, minute, learn.time_zone, rises, steady.needs)
    return replace(
        learned,
        minute=minute,
        history=history,
        accounting=accounting,
        outlook=outlook,
        rises=rises,
        steady=steady,
    )


def _with_boots(learned: Learned, view: PoolView, now: float) -> Learned:
    """Note how long a new node took, from when somebody began to wait for it."""
    if learned.view is None or learned.boot_clock is None:
        return replace(learned, boot_clock=BootClock.begun(now))
    history = learned.history
    clock, seconds = learned.boot_clock.after_look(
        learned.view.nodes.keys(), view.nodes, view.waiting_since, history.boot_seconds, now
    )
    if seconds is not None:
        history = replace(history, boots=(*history.boots, seconds)[-KEPT_BOOTS:])
    return replace(learned, boot_clock=clock, history=history)


def _with_pulls(learned: Learned, view: PoolView, now: float) -> Learned:
    """Note for how long new nodes pulled images for people who had waited for them."""
    if learned.view is None:
        return learned
    new_pulls = pulls_seen(learned.view, view, now)
    if not new_pulls:
        return learned
    pulls = (*learned.history.pulls, *new_pulls)[-KEPT_PULLS:]
    return replace(learned, history=replace(learned.history, pulls=pulls))
