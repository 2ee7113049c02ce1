"""Why a container waits, by the kubelet: its image can't be pulled, or was pulled and can't be used."""

from __future__ import annotations

from typing import Final

# The image is not present.
PULL_FAULTS: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
# The image is present.
AFTER_PULL_FAULTS: Final = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "PostStartHookError",
        "RunContainerError",
    }
)
