"""Units of time: stored times are in µs, those of replays in seconds."""

from typing import Final

US: Final = 1_000_000
MINUTE_US: Final = 60 * US
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US
HOUR_SECONDS: Final = 3600
DAY_SECONDS: Final = 24 * HOUR_SECONDS
