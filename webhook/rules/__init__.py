"""What a pod gets, and from which facts. No I/O, no clock.

`rulebook.py` has every rule and the table of them; `patch.py` turns their changes into JSON Patch operations;
`bounds.py` limits what one review can cost. `facts.py` is a snapshot of the cluster; `ledger.py` remembers homes that
the facts don't show yet. `home_finder.py` finds the node for a repository's builds, `warm_finder.py` the warm set.
"""
