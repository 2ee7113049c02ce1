"""A real Kubernetes control plane for tests: pinned programs, started on loopback, stopped without
a trace.
"""
