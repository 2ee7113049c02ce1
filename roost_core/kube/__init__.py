"""The only package that talks to the Kubernetes API.

- Requests: `client.py` sends them. `account.py` connects as a pod, `user_account.py` as kubectl
  would, by `kubeconfig.py`.
- Watches, from below: `event_stream.py` lists and watches a kind of object. `watch_cache.py` keeps
  what it brings. `watches.py` is the base of a program's classes for the kinds that it watches.
- Leases: `leader_election.py` holds one, `lease_watch.py` observes those of other holders.
- Certificates: `pki.py` makes them, `webhook_secrets.py` stores them.
- What all programs need: `kube_version.py` (the cluster's version), `readiness.py`, `logs.py`,
  `process.py`.
"""
