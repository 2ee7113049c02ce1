"""The placeholder mover: keeps placeholders on the newest fit node of their pool.

`plan.py` puts one plan together: `marks.py` chooses the node that attracts each set, `moves.py`
chooses what to evict, and has every reason not to. `unneeded_nodes.py` finds nodes that only
placeholders use. `node_fitness.py` says which nodes are fit. `view.py`: pods and placeholders.
`move_memory.py` remembers evictions, compares their outcome with the prediction, and backs off
after a wrong one. `scheduler_model.py` predicts where kube-scheduler would put a placeholder.
`settings.py` reads release.json, and holds the mover's times, which the values don't have.
"""
