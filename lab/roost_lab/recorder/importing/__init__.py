"""Make records from the history that a cluster's operators already have: exported Events, pods and
audit logs.
"""
