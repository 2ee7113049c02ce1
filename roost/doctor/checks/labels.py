"""A node that is labelled as holding an image reports it."""

from roost.doctor.contract import Install, Told, warning
from roost.doctor.evidence import DEFAULT_REPORTED, count, some
from roost_core.objects.image_references import normalise_reference
from roost_core.placement.labels import HELD, pulled_label
from roost_core.placement.managed_images import managed_images


def check(install: Install) -> Told:
    values, release = install.values, install.release
    labels = {
        pulled_label(release.name, release.namespace, image): normalise_reference(image)
        for image in managed_images(values["singleuser"], values["prePuller"])
    }
    yield f"labels of {count(len(labels), 'image')}"
    wrong = []
    for node in install.nodes:
        reported = node.image_names
        # A full list is cut: what it lacks may be there.
        if not reported or node.image_count >= DEFAULT_REPORTED:
            continue
        wrong += [
            f"{node.name} ({image})"
            for label, image in labels.items()
            if node.labels.get(label) == HELD and image not in reported
        ]
    if wrong:
        yield warning(
            f"Nodes are labelled as holding an image which their kubelet doesn't report: {some(wrong)}.",
            "The controllers look again within minutes. If it stays: do they lead (check leaders), and may they "
            "patch nodes?",
        )
