"""Turn what the API server's watches tell into records.

`settings.py` reads release.json. `recorder.py` has the threads. On the way from a watch to a
record, `streams.py` says how surely something is new, `reading.py` reduces it, and `assembler.py`
calls the file that makes its records: `pod_records.py` (with removals), `event_records.py` (of
which Events), `pod_events.py` (of which Events of bound pods), `decision_records.py`,
`node_records.py`. What they make is in `changes.py`. `judging.py` adds what `scheduler_model.py`
would have decided, and `shortfalls.py` what nodes lacked. `live_starts.py` counts starts for
`metrics.py`. `hub_log_followers.py` follows the hubs' logs, `hub_log.py` reads their lines, and
`seated_starts.py` knows whom seating started. `clocks.py` corrects nodes' times.
"""
