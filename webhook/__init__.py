"""Admission: from a pod to the JSON Patch that places it.

`admission.py` decides on one pod; `review.py` reads and writes AdmissionReviews around it.
`release_file.py` follows the release document, `main.py` wires the program, with `options.py` and
`metrics.py`. Rooms: `rules/` (what a pod gets), `watching/` (keeps the facts about the cluster),
`certificates/` (what reviews are served with). `rendezvous.py` and `home_load.py` choose the home
of a build. `serving.py`: HTTP.
"""
