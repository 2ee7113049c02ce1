"""The parts of release.json that programs share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from roost_core.objects.pod import Pod
from roost_core.objects.selectors import read_label_selector
from roost_core.release.class_of_pod import Classes, namespace_matches
from roost_core.release.image_gate import ImageGate, read_image_gate
from roost_core.release.placeholder_sets import PlaceholderSet, read_placeholder_sets
from roost_core.release.pod_classes import PodClass, read_pod_classes, read_selector
from roost_core.release.reader import (
    DNS_LABEL,
    DNS_NAME,
    Document,
    Reader,
    SettingsError,
    SettingsFault,
    describe,
)

VERSION: Final = 1
# Keys of `leases`.
SCHEDULER: Final = "scheduler"
CONTROLLERS: Final = "controllers"


class ReleaseSettings:
    """One release. Each part is read when it is first asked for; its faults go to the reader.

    A program asks for what it needs, then calls `raise_faults`. Top-level keys that none asks for
    are ignored, so that a newer chart's document can be read while pods are replaced.
    """

    def __init__(self, read: Reader, document: Document, revision: str = "") -> None:
        """revision: of the document; annotated on every placed pod."""
        self.read = read
        self.document = document
        self.revision = revision

    def raise_faults(self) -> None:
        """Raise SettingsError with all faults of the parts that were read, and of a version that
        isn't known.
        """
        faults = list(self.read.faults)
        version = self.document.get("version")
        if version != VERSION:
            faults.insert(0, SettingsFault("version", describe(version), str(VERSION)))
        if faults:
            raise SettingsError(faults)

    def _section(self, key: str) -> Document:
        return self.read.mapping(self.document.get(key), key)

    @cached_property
    def name(self) -> str:
        """The release's name."""
        return self.read.name(self.document.get("release"), "release", DNS_NAME, "a release's name")

    @cached_property
    def namespace(self) -> str:
        """Its namespace."""
        return self.read.name(
            self.document.get("namespace"), "namespace", DNS_LABEL, "a namespace's name"
        )

    @cached_property
    def classes(self) -> Mapping[str, PodClass]:
        """`podClasses`, by name."""
        return read_pod_classes(self.read, self.document.get("podClasses"))

    @cached_property
    def _matcher(self) -> Classes:
        return Classes(self.namespace, self.classes)

    def class_of(
        self, pod: Pod, namespaces: Mapping[str, Mapping[str, str]] | None
    ) -> PodClass | None:
        """Return the class of a pod; None: it has none. namespaces: labels, as far as known."""
        return self._matcher.classify(pod.labels, pod.namespace, namespaces)

    @cached_property
    def _users_classes(self) -> frozenset[str]:
        return frozenset(
            pod_class.name for pod_class in self.classes.values() if pod_class.is_of_users
        )

    def is_users(self, pod: Pod, namespaces: Mapping[str, Mapping[str, str]] | None) -> bool:
        """Whether it is a user's pod."""
        pod_class = self.class_of(pod, namespaces)
        return pod_class is not None and pod_class.name in self._users_classes

    def is_neighbours(self, pod: Pod) -> bool:
        """Whether it is of another hub, and a user's pod by its labels. Without `sharedPools` none
        is.

        The labels of its namespace don't count: not every part of Roost may read them.
        """
        if self.shared_namespaces is None or pod.namespace == self.namespace:
            return False
        pod_class = self._matcher.classify(pod.labels, self.namespace, None)
        return pod_class is not None and pod_class.name in self._users_classes

    def users_namespaces(
        self, namespaces: Mapping[str, Mapping[str, str]] | None
    ) -> frozenset[str] | None:
        """The namespaces whose users' pods have a class; None: not all of them are known.

        namespaces: labels, as far as known.
        """
        names: set[str] = set()
        for pod_class in self.classes.values():
            if not pod_class.is_of_users:
                continue
            if pod_class.namespace_selector is None:
                names.add(self.namespace)
                continue
            requirements = read_label_selector(pod_class.namespace_selector)
            if namespaces is None or requirements is None:
                return None
            names |= {
                name for name in namespaces if namespace_matches(requirements, name, namespaces)
            }
        return frozenset(names)

    @cached_property
    def gate(self) -> ImageGate:
        """`imageGate`."""
        return read_image_gate(self.read, self.document.get("imageGate"), self.name, self.namespace)

    @cached_property
    def pullers_run(self) -> bool:
        """Whether pullers stay on nodes and bring the managed images to each node that joins."""
        return self.read.flag(self.document.get("pullersRun"), "pullersRun")

    @cached_property
    def sets_scheduler(self) -> bool:
        """Whether pods get Roost's scheduler; False: they keep the cluster's."""
        target = self._section("scheduler").get("target")
        if not target:
            self.read.fault("scheduler.target", target, "deploy, or who else schedules")
        return self.read.text(target, "scheduler.target") == "deploy"

    @cached_property
    def packing_profiles(self) -> frozenset[str]:
        """Profiles of the strategy pack. Beside each is a strict one: STRICT_SUFFIX."""
        profiles = self.read.mapping(
            self._section("scheduler").get("profiles"), "scheduler.profiles"
        )
        return frozenset(
            name
            for name, profile in profiles.items()
            if isinstance(profile, dict) and profile.get("strategy") == "pack"
        )

    @cached_property
    def replace_schedulers(self) -> frozenset[str]:
        """Names of schedulers that pods don't keep."""
        names = self.read.items(self.document.get("replaceSchedulers"), "replaceSchedulers")
        return frozenset(
            self.read.text(name, f"replaceSchedulers[{index}]") for index, name in enumerate(names)
        )

    @cached_property
    def reads_nodes(self) -> bool:
        """Whether the webhook may read nodes; False: there are never facts about them."""
        return self.read.flag(self._section("webhook").get("readNodes"), "webhook.readNodes")

    @cached_property
    def shared_namespaces(self) -> Mapping[str, object] | None:
        """A label selector of the namespaces of all hubs that share nodes with this one; None: none
        does.
        """
        selector = self._section("sharedPools").get("namespaceSelector")
        return read_selector(self.read, selector, "sharedPools.namespaceSelector")

    @cached_property
    def leases(self) -> Mapping[str, str]:
        """Names of the Leases of Roost's other parts, in the release's namespace, by part
        (SCHEDULER, CONTROLLERS).
        """
        leases = self.read.mapping(self.document.get("leases"), "leases").items()
        return {
            part: self.read.name(name, f"leases.{part}", DNS_NAME, "a Lease's name")
            for part, name in leases
        }

    @cached_property
    def scheduler_host(self) -> str:
        """The host name of a scheduler that has these values' profiles; "": it isn't known."""
        host = self.document.get("schedulerHost")
        return self.read.name(host, "schedulerHost", DNS_NAME, "a host's name") if host else ""

    @cached_property
    def placeholder_sets(self) -> tuple[PlaceholderSet, ...]:
        """`placeholders`."""
        entries = self.document.get("placeholders")
        return read_placeholder_sets(self.read, entries, self.name, self.namespace)

    @cached_property
    def placeholder_names(self) -> tuple[str, ...]:
        """Names of the placeholder sets; pods that name none belong to the first."""
        entries = self.read.mappings(self.document.get("placeholders"), "placeholders")
        names = [
            (entry.get("name"), f"placeholders[{index}].name")
            for index, entry in enumerate(entries)
        ]
        return tuple(self.read.text(name, key) for name, key in names)
