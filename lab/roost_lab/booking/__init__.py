"""What `roost book` books: an entry of `events` for each event.

`entry.py` makes one of what people write, and reads it; `roost rehearse` does, too. `timetable.py`
makes entries of a CSV. `config_map.py` keeps them, and knows what the release takes.
`exceeded_limits.py` warns of what is beyond. Entries of calendars: `roost_lab/calendars/`.
"""
