"""Read bookings from iCalendar files, of strangers too: within bounds, each fault by name.

`source.py`: what `roost book --calendar` asks for, and the calendar's bytes. `reader.py`: which
events are booked, and as what; what is known of an event comes together there. `descriptions.py`
reads text alone: how many people it names, and with what. `occurrences.py`: when an event begins.
`zones.py`: in which zone. `time_limit.py` ends a stranger's rules that would run for ever.
"""
