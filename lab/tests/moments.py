"""Spans in µs, and the moment at which made-up records begin: 2027-01-15 08:00 UTC."""

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
BEGIN = 1_800_000_000 * SECOND
