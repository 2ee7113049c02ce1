"""What a pod gets, and from which facts. Pure."""
