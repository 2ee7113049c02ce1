"""The only package that talks to the Kubernetes API.

`client.py` sends requests, `user_account.py` connects as whoever is at the terminal.
`event_stream.py` lists and watches, `watch_cache.py` keeps what a watch brings, `watches.py` is
the base of what a program knows by its watches.
`leader_election.py` holds a Lease, `lease_watch.py` observes others'. `pki.py` makes certificates,
`trust.py` stores them. `kube_version.py` follows the cluster's version; `readiness.py`, `logs.py`
and `process.py` are what all programs need.
"""
