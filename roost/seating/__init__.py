"""`roost seating`: start the servers of a class's listed people before it begins, by JupyterHub's
REST API. It has no rights in Kubernetes.
"""
