"""Name what kubelets say of a container whose image doesn't come, or comes and can't be used."""

from __future__ import annotations

from typing import Final

# A container waits for one of these before its image is there ...
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
# ... and for one of these only after.
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
