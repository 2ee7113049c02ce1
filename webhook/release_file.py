"""Follow the file with the release document.

A valid change replaces the settings as a whole. An invalid change is logged and counted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from roost_core.kube.readiness import Readiness
from roost_core.placement.labels import RELEASE_KEY
from roost_core.release.reader import Reader, SettingsError
from roost_core.release.release_settings import ReleaseSettings
from webhook.metrics import WebhookMetrics
from webhook.rules import unread_keys
from webhook.webhook_settings import read_settings

log = logging.getLogger(__name__)

# The kubelet brings a changed ConfigMap within about a minute, so a second more doesn't matter. The
# file has about ten kilobytes. Reading it again and again is more robust than watching for changes,
# because the kubelet changes symbolic links, not the file.
POLL_SECONDS: Final = 1.0

# In use until the first valid document: every pod is admitted unchanged.
NO_RULES: Final = ReleaseSettings(Reader(), {})


class ReleaseFile:
    """The file, and the settings in use: those of the last valid document."""

    def __init__(
        self,
        path: Path,
        metrics: WebhookMetrics,
        on_change: Callable[[ReleaseSettings], None] = lambda _settings: None,
        check: Callable[[ReleaseSettings], str] = lambda _settings: "",
    ) -> None:
        """path: a file, or the folder in which it is mounted. on_change: called with new settings.
        check: returns why to reject valid settings; "": they are accepted.
        """
        self._path = path / RELEASE_KEY if path.is_dir() else path
        self._metrics = metrics
        self._on_change = on_change
        self._check = check
        # The settings in use; immutable, and replaced as a whole.
        self.settings = NO_RULES
        # What was read last; None: nothing could be read.
        self._last_text: bytes | None = None
        # What is wrong with `_last_text`; "": nothing.
        self._fault = "not read yet"

    def readiness(self) -> Readiness:
        """Ready once there was a valid document. A later fault is only reported."""
        if self.settings is NO_RULES:
            return Readiness(
                passed=False, detail=f"no policy yet, pods are admitted unchanged: {self._fault}"
            )
        detail = f"revision {self.settings.revision}"
        if self._fault:
            detail += f" stays in use, reload failed: {self._fault}"
        return Readiness(passed=True, detail=detail)

    def poll(self) -> None:
        """Read the file, and use it if it changed and is valid."""
        try:
            text = self._path.read_bytes()
        except OSError as error:
            self._reject(f"can't be read: {error.strerror}", None)
            return
        if text == self._last_text:
            return
        try:
            settings = read_settings(text)
        except SettingsError as error:
            self._reject(error.one_line(), text)
            return
        unread = unread_keys(settings)
        if unread:
            self._reject(f"no rule reads {', '.join(sorted(unread))}", text)
            return
        why_not = self._check(settings)
        if why_not:
            self._reject(why_not, text)
            return
        self._last_text = text
        self._fault = ""
        if settings.revision == self.settings.revision:
            return
        self.settings = settings
        log.info(
            "policy in use revision=%s classes=%s", settings.revision, ",".join(settings.classes)
        )
        self._on_change(settings)

    def _reject(self, reason: str, text: bytes | None) -> None:
        """Keep the settings in use. text: None: the file can't be read.

        The same fault of the same text is logged once, not with each poll.
        """
        fault = f"{self._path.name}: {reason}"
        if fault == self._fault and text == self._last_text:
            return
        self._last_text = text
        self._fault = fault
        self._metrics.policy_reload_failures.inc()
        log.error(
            "policy rejected, revision=%s stays in use: %s", self.settings.revision or "none", fault
        )

    def run(self, stop: threading.Event) -> None:
        """Poll until `stop`."""
        while not stop.wait(POLL_SECONDS):
            try:
                self.poll()
            except Exception:
                # No error may end the thread: then no change would be seen.
                log.exception("policy poll failed")
