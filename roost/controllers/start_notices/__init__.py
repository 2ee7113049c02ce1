"""Tell users what their server waits for, and about how long, by Events on its pod.

`plan.py` chooses whom to tell what, and `texts.py` words it; `estimates.py` says how long,
`pulls_of_nodes.py` what a node pulls before, `hold_ups.py` what holds a bound pod up. `settings.py`
reads whether they are on at all.
"""
