"""Lint `placeholders` and `placeholder.defaults`: names, windows, and whether they reserve room
where users run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from generator.checks.contract import LintReport, Phrase
from generator.checks.faulty_keys import sound_entries
from generator.faults import KeyPath
from generator.values.lookups import child, listing, mapping, number, text
from generator.values.merge import Values
from generator.values.release_name import Release
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import requested

DEFAULTS: Final = ("placeholder", "defaults")
_LONG_HOURS: Final = 24
# In the names of devices whose nodes cost several times as much as usual ones. A pool that requests
# no device may say so by its labels or taints.
_GPU_WORDS: Final = (
    "gpu",
    "accelerator",
    "nvidia.com/mig",
    "google.com/tpu",
    "aws.amazon.com/neuron",
    "habana.ai/gaudi",
)


class ListedSet(NamedTuple):
    """One entry of `placeholders`. named: as written; defaults: what it inherits."""

    position: int
    named: Values
    defaults: Values

    def value(self, key: str) -> object:
        """The value of a key: its own, else the inherited one."""
        own = self.named.get(key)
        return self.defaults.get(key) if own is None else own

    def path(self, key: str) -> KeyPath:
        """The path at which the value of `key` is written."""
        if self.named.get(key) is None:
            return (*DEFAULTS, key)
        return ("placeholders", self.position, key)


def placeholder_sets(report: LintReport) -> Iterator[ListedSet]:
    """The entries of `placeholders`, each with its inherited defaults."""
    defaults = mapping(child(report.values, *DEFAULTS))
    for index, entry in sound_entries(report.values.get("placeholders")):
        yield ListedSet(index, mapping(entry), defaults)


def is_gpu(device: str) -> bool:
    """Whether a device's name, or the labels of its nodes, say that it is a GPU or alike."""
    return any(word in device.lower() for word in _GPU_WORDS)


def is_wanted(placeholder_set: ListedSet) -> bool:
    """Whether the set has pods at any time."""
    learned = number(child(placeholder_set.value("learn"), "max"))
    return learned > 0 or is_wanted_unlearned(placeholder_set)


def is_wanted_unlearned(placeholder_set: ListedSet) -> bool:
    """Whether the set has pods at any time if nothing is learned."""
    windows = listing(placeholder_set.value("windows"))
    numbers = [child(window, "replicas") for window in windows]
    return any(number(replicas) > 0 for replicas in (placeholder_set.value("replicas"), *numbers))


def check(report: LintReport, _release: Release) -> None:
    """Check every set of placeholders."""
    first: dict[str, int] = {}
    for placeholder_set in placeholder_sets(report):
        path: KeyPath = ("placeholders", placeholder_set.position)
        for lint in (
            _lint_size,
            _lint_dropped,
            _lint_learn,
            _lint_node_price,
            _lint_learning_prices,
        ):
            with report.part():
                lint(report, placeholder_set)
        with report.part():
            name = text(placeholder_set.named.get("name"))
            if name in first:
                expected = f"a name of its own (placeholders[{first[name]}] has it)"
                report.error((*path, "name"), name, expected, "Rename one.")
            first.setdefault(name, placeholder_set.position)
        with report.part():
            windows = listing(placeholder_set.named.get("windows"))
            if windows:
                _lint_windows(report, (*path, "windows"), windows)
        for key in ("windows", "learn"):
            with report.part():
                if placeholder_set.named.get(key):
                    _lint_followed(report, (*path, key))
    with report.part():
        _lint_learning_alike(report)


def _lint_size(report: LintReport, placeholder_set: ListedSet) -> None:
    resources = mapping(placeholder_set.value("resources"))
    # What only has a limit requests as much.
    is_empty = not (resources.get("requests") or resources.get("limits"))
    if is_empty and number(placeholder_set.value("replicas")) > 0:
        reason = "a placeholder without requests keeps nothing free."
        path = placeholder_set.path("resources")
        report.warn(path, reason, "Request at least what one user requests.")


def _lint_followed(report: LintReport, path: KeyPath) -> None:
    """Check that somebody follows what a set's number depends on."""
    if child(report.values, "controllers", "enabled") is not True:
        reason = (
            "only the controllers set the number of placeholders: placeholders[].replicas applies."
        )
        report.warn(path, reason, "Set controllers.enabled to true, or remove it.")


def _lint_learning_alike(report: LintReport) -> None:
    """Name sets that learn from the same people: each person counts for one of them."""
    before: list[ListedSet] = []
    for placeholder_set in placeholder_sets(report):
        if not placeholder_set.named.get("learn"):
            continue
        path = ("placeholders", placeholder_set.position, "learn")
        name = text(placeholder_set.named.get("name"))
        for other in before:
            if not _share_nodes(placeholder_set, other):
                continue
            others_name = text(other.named.get("name"))
            if all(
                placeholder_set.value(key) == other.value(key)
                for key in ("resources", "nodeSelector")
            ):
                reason = (
                    f"sets {others_name} and {name} have equal placeholders on the same nodes:"
                    f" people count for {others_name} alone, and {name} learns nothing."
                )
                fix = "Leave one of them out, or give it other nodes."
                report.warn(path, reason, fix)
            else:
                reason = (
                    f"sets {others_name} and {name} learn on the same nodes: each person counts"
                    " for the set whose placeholder is nearest in size, or that names fewer nodes."
                )
                fix = "Where that isn't meant, give one of them other nodes."
                report.hint(path, reason, fix)
            break
        before.append(placeholder_set)


def _share_nodes(placeholder_set: ListedSet, other: ListedSet) -> bool:
    """Whether all nodes of one set are surely the other's, too."""
    selector = mapping(placeholder_set.value("nodeSelector")).items()
    others_selector = mapping(other.value("nodeSelector")).items()
    are_alike = all(
        listing(placeholder_set.value(key)) == listing(other.value(key))
        for key in ("requiredNodeTerms", "tolerations")
    )
    return are_alike and (selector <= others_selector or others_selector <= selector)


def _lint_learn(report: LintReport, placeholder_set: ListedSet) -> None:
    from roost_core.placement.headroom_windows import expected_zone, is_time_zone  # noqa: PLC0415 - as below

    learn = placeholder_set.named.get("learn")
    if learn is None:
        return
    path = ("placeholders", placeholder_set.position, "learn")
    with report.part():
        low = number(child(learn, "min"))
        high = number(child(learn, "max"))
        if low > high:
            expected = f"a number up to max, which is {high:g}"
            report.error((*path, "min"), child(learn, "min"), expected, "Lower it.")
    with report.part():
        zone = text(child(learn, "timeZone"))
        if not is_time_zone(zone):
            report.error((*path, "timeZone"), zone, expected_zone(zone), "Correct the name.")


def _lint_node_price(report: LintReport, placeholder_set: ListedSet) -> None:
    """Warn about a learned set whose nodes have GPUs and the price of nodes without any."""
    gpu = _requested_gpu(placeholder_set)
    if not gpu or not _learns_at_shared_price(placeholder_set):
        return
    is_shared = any(
        _learns_at_shared_price(other) and not _requested_gpu(other)
        for other in placeholder_sets(report)
    )
    # Where only nodes with GPUs are at that price, and somebody set it, it may well be theirs.
    if not is_shared and not report.is_default((*DEFAULTS, "prices", "nodeHour")):
        return
    price = number(child(report.values, *DEFAULTS, "prices", "nodeHour"))
    reason = (
        f"nodes with {gpu} are counted at {price:g} an hour (prices.nodeHour), as nodes without"
        " it: learning may cost several times what Roost takes it to cost."
    )
    fix = "Name their price here: prices: {waitingHour: 4, nodeHour: 3}."
    report.warn(("placeholders", placeholder_set.position, "learn"), reason, fix)


def _lint_learning_prices(report: LintReport, placeholder_set: ListedSet) -> None:
    """Warn about prices at which nothing is learned, and about a ceiling that isn't inherited."""
    if placeholder_set.named.get("learn") is None:
        return
    prices = mapping(placeholder_set.value("prices"))
    waiting = number(prices.get("waitingHour"))
    node = number(prices.get("nodeHour"))
    if node > 2 * waiting > 0:
        reason = (
            f"an hour of waiting is worth {waiting:g}, and a node-hour costs {node:g} (prices):"
            " hardly any node is worth its price."
        )
        fix = "Give both prices in the same money."
        report.warn(("placeholders", placeholder_set.position, "learn"), reason, fix)
    own = placeholder_set.named.get("prices")
    ceiling = child(report.values, *DEFAULTS, "prices", "monthlyCeiling")
    if own is not None and ceiling is not None and child(own, "monthlyCeiling") is None:
        reason = (
            "these prices stand for all of placeholder.defaults.prices, so its monthlyCeiling of"
            f" {number(ceiling):g} doesn't hold here."
        )
        fix = "Name monthlyCeiling here, too, or leave it to follow from the nodes."
        report.warn(("placeholders", placeholder_set.position, "prices"), reason, fix)


def _requested_gpu(placeholder_set: ListedSet) -> str:
    """The name of the GPU that a placeholder requests; "": none."""
    amounts = requested(mapping(placeholder_set.value("resources")))
    gpus = (name for name, amount in amounts.items() if is_gpu(name) and parse_quantity(amount) > 0)
    return next(gpus, "")


def _learns_at_shared_price(placeholder_set: ListedSet) -> bool:
    """Whether the set learns, and its nodes have the price of `placeholder.defaults`."""
    named = placeholder_set.named
    return named.get("learn") is not None and named.get("prices") is None


def _lint_windows(report: LintReport, path: KeyPath, windows: list[object]) -> None:
    """Check the windows of a set."""
    names: set[str] = set()
    for position, entry in sound_entries(windows):
        with report.part():
            _lint_window(report, (*path, position), entry)
        with report.part():
            name = text(child(entry, "name"))
            if name in names:
                expected = "a name that no other window of the set has"
                report.error((*path, position, "name"), name, expected)
            names.add(name)


def _lint_window(report: LintReport, path: KeyPath, entry: object) -> None:
    # Cron texts and zones: most values have none.
    from roost_core.placement.headroom_windows import longest_and_hours, never_holds  # noqa: PLC0415
    from roost_core.release.reader import Reader  # noqa: PLC0415
    from roost_core.release.windows import parse_windows  # noqa: PLC0415

    read = Reader()
    parsed = parse_windows(read, [entry], "")
    for fault in read.faults:
        _, _, key = fault.key.partition(".")
        report.error((*path, key) if key else path, Phrase(fault.found), fault.expected)
    for window in parsed:
        if never_holds(window):
            reason = "the window is always empty: it starts and ends at the same time."
            report.warn((*path, "end"), reason, "Give it another end.")
            continue
        if not report.with_hints:
            continue
        longest, hours = longest_and_hours(window)
        fields = window.start.split()
        # Of cron's five fields the third and the fifth; a date has fewer.
        names_both = len(fields) == 5 and fields[2][0] != "*" and fields[4][0] != "*"
        if longest > _LONG_HOURS or names_both:
            either = ""
            if names_both:
                either = (
                    "its start names days of the month and of the week, and cron takes either; "
                )
            reason = (
                f"{either}it lasts up to {round(longest, 1):,g} hours, {hours:,.0f}"
                " placeholder-hours a week."
            )
            fix = "If that isn't meant: let end name each day that start does, after its last hour."
            report.hint((*path, "start"), reason, fix)


def _lint_dropped(report: LintReport, placeholder_set: ListedSet) -> None:
    """Warn about a list without the tolerations of the user pools: it replaces the list of the
    defaults.
    """
    # A set that only learns counts users on nodes where its own pods can go. If it can go nowhere,
    # it learns of nobody, and so has no pods.
    if placeholder_set.named.get("tolerations") is None or not is_wanted_unlearned(placeholder_set):
        return
    own_tolerations = [mapping(entry) for entry in listing(placeholder_set.named["tolerations"])]
    dropped: list[str] = []
    for entry in listing(child(report.values, *DEFAULTS, "tolerations")):
        toleration = mapping(entry)
        if not any(covers(own, toleration) for own in own_tolerations):
            dropped.append(show_toleration(toleration))
    if dropped:
        reason = (
            f"leaves out {' and '.join(dropped)} of placeholder.defaults.tolerations: these"
            " placeholders keep no room on nodes with that taint, and may take room of core nodes"
            " instead."
        )
        fix = "Add it, or leave `tolerations` out of the entry to inherit it."
        report.warn(placeholder_set.path("tolerations"), reason, fix)


def covers(toleration: Values, other: Values) -> bool:
    """Whether `toleration` tolerates every taint that `other` does."""
    if toleration.get("effect") and toleration.get("effect") != other.get("effect"):
        return False
    if toleration.get("operator") == "Exists":
        return not toleration.get("key") or toleration.get("key") == other.get("key")
    is_alike = all(
        (toleration.get(key) or "") == (other.get(key) or "") for key in ("key", "value")
    )
    return is_alike and other.get("operator") != "Exists"


def show_toleration(toleration: Values) -> str:
    """A toleration as `kubectl taint` writes the taint."""
    shown = text(toleration.get("key")) or "*"
    value = text(toleration.get("value"))
    effect = text(toleration.get("effect"))
    if value:
        shown += f"={value}"
    if effect:
        shown += f":{effect}"
    return shown
