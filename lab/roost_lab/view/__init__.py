"""The cluster at one moment of the record, as a page that is served to a browser.

`reading.py` reads one moment from a record, `live.py` from the API server; both are rows, of which
`moment.py` makes nodes, pods and changes. Nodes' labels end there: what chooses nodes by a label
belongs before it, for `roost top` into `live.py`. `course.py` says what users waited for over a
time, with `crowds.py`. `unanswered_servers.py` follows hubs' logs of a live cluster. `server.py`
serves, `terminal.py` draws for `roost top`, and `shareable.py` writes one file.
"""
