"""Builds that run now have a home, chosen among the nodes that have builders."""

from roost.doctor.contract import Install, Told, warning
from roost.doctor.evidence import annotation_of, labelled, pods_in_class, pods_of, some
from roost_core.placement.labels import HOME_TARGET_ANNOTATION, POLICY_REVISION_ANNOTATION


def check(install: Install) -> Told:
    entry = install.values["podClasses"].get("build") or {}
    home = entry.get("home")
    builds = pods_in_class(install, entry) if home else []
    yield f"{len(builds)} builds in {install.release.namespace}"
    wanted = ((home or {}).get("builders") or {}).get("labels") or {}
    if builds and wanted and not labelled((*pods_of(install, entry), *install.pods), wanted):
        said = ", ".join(f"{key}={value}" for key, value in wanted.items())
        yield warning(
            f"Builds run, and no pod beside them has the builders' labels ({said}): homes are "
            "chosen among all nodes, whether they have build caches or not.",
            "Set podClasses.build.home.builders.labels to the builder pods' labels: binderhub-service has others.",
        )
    placed = [pod for pod in builds if annotation_of(pod, POLICY_REVISION_ANNOTATION)]
    if homeless := [pod["metadata"]["name"] for pod in placed if not annotation_of(pod, HOME_TARGET_ANNOTATION)]:
        fix = "Say in podClasses.build.home.key where a build names its repository; or no node was known then."
        yield warning(f"{len(homeless)} of {len(builds)} builds have no home: {some(homeless)}.", fix)
