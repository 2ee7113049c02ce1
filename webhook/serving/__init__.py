"""The webhook as a WSGI application, and its life from the first certificate to the drain."""
