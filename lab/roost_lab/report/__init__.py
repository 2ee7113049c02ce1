"""Sum the records up as a report.

`sections.py` is the table of the page's sections; each is a file with its numbers, tables and
figures (`subject.py`): `start_phases.py`, `new_nodes.py`, `slow_starts.py`, `pulls.py`,
`failed_tries.py`, `occupancy.py`, `removals.py`, `gaps.py`. At the head stand
`sentence.py` and `key_figures.py`. `query.py` and `gather.py` read the database, `statistics.py`
sums up, `page.py` and `formats.py` write.
"""
