"""Headroom: how many placeholders each set has, by the clock.

`plan.py` puts one plan together. `learned_number.py` makes windows, bookings and the forecast one
number. `learning.py` keeps earlier weeks and forecasts from them, and `accounting.py` counts what
that saves and costs. `boot_clock.py` measures how long nodes boot. `booked.py`: numbers for booked
events. `pool_view.py`: the users and the room of a set's nodes. `set_of_user.py`: for which set a
user counts where several learn on the same nodes. `quota_room.py`: what ResourceQuotas leave room
for. Windows of time: roost_core/placement. `settings.py` reads release.json.
"""
