"""Make records from the history that a cluster's operators already have: exported Events, pods and
audit logs.

`history.py` runs the import. `files.py` reads files, however they are packed, `wrappers.py` finds
Kubernetes' objects in them. `objects.py` (Events, pods), `audit.py` and `hub_log.py` make records
of these. `clocks.py` corrects nodes' times.
"""
