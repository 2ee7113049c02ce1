"""HTTP around the reviews.

`app.py` is the WSGI application; `lifecycle.py` serves it from the first certificate until it has drained.
The HTTP server itself is `roost_core/http/`.
"""
