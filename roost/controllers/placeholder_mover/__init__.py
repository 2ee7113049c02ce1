"""The placeholder mover: keeps placeholders on the newest fit node of their pool.

`plan.py` puts one plan together: `marks.py` chooses the node that attracts each set, `moves.py` chooses what to evict.
`reasons_to_stay.py` says why a placeholder is not moved; `node_fitness.py` says which nodes are fit.
`move_memory.py` remembers evictions, compares their outcome with the prediction, and backs off after a wrong one.
`scheduler_model.py` predicts where kube-scheduler would put a placeholder. `placeholders.py`, `pod_index.py`: pods.
`settings.py` reads controllers.json.
"""
