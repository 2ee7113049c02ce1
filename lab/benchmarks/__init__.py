"""Measure Roost against peers, always as a ratio within one run. Figures are printed, never
asserted.

Webhook: `admission.py`, beside the same rules in Go (`go/`; `equality.py`: both sides patch alike),
`large.py`, `how_large.py`. `render.py`, `scheduling.py`, `preemptions.py`,
`controllers.py`, `recorder*.py`, `simulator.py`: what their name says. `never_worse.py` compares
hubs with and without Roost (`hub_scenarios.py`).
Shared: `figures.py` (medians, tables), `programs.py` and `servers.py` (start the webhooks),
`policy.py`, `stage.py` and `scene.py` (small and large clusters), `certificates.py`.
"""
