"""The only package that talks to the Kubernetes API: client, watches, Leases, leader election, certificates, probes."""
