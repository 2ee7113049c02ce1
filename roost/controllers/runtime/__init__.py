"""Run the controllers' plans: the only room of theirs that talks to the API server.

`watching/` keeps the snapshot, `loop.py` asks for plans, `apply.py` carries their actions out
within `budget.py`, `events.py` writes Events, `metrics.py` shows what happened. `starts.py` follows
starts of pods. `booking_sources.py` reads bookings where hub admins write them.
"""
