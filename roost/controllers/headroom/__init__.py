"""Headroom: how many placeholders each set has, by the clock, and how large those for whole nodes are.

`plan.py` puts one plan together; `whole_nodes.py` works out sizes, `learning.py` numbers from earlier weeks. Windows of
time: roost_core/placement.
`settings.py` reads release.json.
"""
