"""Headroom: how many placeholders each set has, by the clock.

`plan.py` puts one plan together; `learning.py` works out numbers from earlier weeks. Windows of
time: roost_core/placement. `settings.py` reads release.json.
"""
