"""The only package that talks to the Kubernetes API.

`client.py` sends requests, `user_account.py` connects as whoever is at the terminal.
The lowest of three is `event_stream.py`: it lists and watches. On it, `watch_cache.py` keeps what
a watch brings. On that, `watches.py` is the base of what a program knows by its watches.
`leader_election.py` holds a Lease, `lease_watch.py` observes others'. `pki.py` makes certificates,
`webhook_secrets.py` stores them. `kube_version.py` follows the cluster's version; `readiness.py`,
`logs.py` and `process.py` are what all programs need.
"""
