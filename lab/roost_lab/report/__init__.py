"""Sum the records up as a report.

`sections.py` is the table of the page's sections; each is a file with its numbers, tables and
figures (`subject.py`): `slow_starts.py` (with `slow_causes.py`), `waits_after_binding.py`,
`start_phases.py`, `new_nodes.py`, `seated.py`, `launches.py`, `pulls.py`, `occupancy.py`,
`failed_scheduling_attempts.py`, `removals.py`, `disks.py`, `usage.py`, `gaps.py`. `imported.py`
says what isn't known of imported pods. At the head stand `sentence.py` and `key_figures.py`. When a
start begins and ends is in `recorder/store/start_times.py`. `query.py` and `gather.py` read the
database, `statistics.py` sums up, `timeline.py` draws, `page.py` and `formats.py` write.
"""
