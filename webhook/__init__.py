"""Admission: from a pod to the JSON Patch that places it.

`admission.py` decides on one pod; `review.py` reads and writes AdmissionReviews around it.
`patch.py` makes the JSON Patch, `bounds.py` limits what a review can cost. `release_file.py`
follows the release document, `main.py` wires the program, with `webhook_options.py`,
`webhook_settings.py` (of release.json) and `metrics.py`. Rooms: `rules/` (what a pod gets),
`facts/` (what rules know of the cluster), `watching/` (keeps the facts), `certificates/` (what
reviews are served with). `rendezvous.py` chooses the home of a build, `binderhub_terms.py`
recognises BinderHub's choice. `serving.py`: HTTP.
"""
