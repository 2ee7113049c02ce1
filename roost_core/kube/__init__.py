"""The only package that talks to the Kubernetes API: client, watches, Leases and leader election, certificates, probes."""
