"""Answer what people ask of the records: one pod's story.

`pod_story.py` reads all that is known of a pod. `explanation.py` says it in sentences: of a pod
that waits by `waiting.py`, of the rule that decided by `deciding_rule.py`, of what it waited for on
its node by `after_binding.py`.
"""
