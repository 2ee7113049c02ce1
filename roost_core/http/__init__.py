"""The HTTP server of all programs: WSGI applications on an event loop, and the pages for probes and
Prometheus.
"""
