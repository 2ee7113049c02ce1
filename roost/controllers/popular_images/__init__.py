"""Popular images: bring what many users run to nodes that lack it.

`plan.py` puts one plan together: `popularity.py` counts users, `wanted.py` chooses images for nodes, `scene.py` and
`node_views.py` say what nodes hold and whether they may pull, `pulls.py` starts and follows pulls, whose pods
`pull_pods.py` writes and reads. `memory.py` is what is kept between plans; `off.py` is the plan while the feature is
switched off. `settings.py` reads controllers.json.
"""
