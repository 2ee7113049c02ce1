"""Kubernetes objects: one typed view of each kind, and the one meaning of selectors, taints and requests.

Every program reads a Pod, a Node and their parts through this package, which knows nothing of Roost's own decisions.
"""
