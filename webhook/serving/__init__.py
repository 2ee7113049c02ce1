"""HTTP: listeners, connections, and the two applications."""
