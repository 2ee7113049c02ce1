"""Read bookings from iCalendar files, of strangers too: within bounds, each fault by name.

`source.py`: what `roost book --calendar` asks for, and the calendar's bytes. `reader.py`: which
events are booked, and as what. An event's parts: `descriptions.py` (how many come, with what),
`occurrences.py` (when), `zones.py` (in which zone). `time_limit.py` ends a stranger's rules
that would run for ever.
"""
