"""The only package that talks to the Kubernetes API: client, informers, leases, server-side apply."""
