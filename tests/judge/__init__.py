"""The judge: one drawn case is played without Roost and with it, and pod by pod it is said who
fared worse.

`cases.py` draws, `world.py` plays in the scheduler's model, `roost_here.py` is Roost in this
process, `verdicts.py` judges. One seed again: `python -m tests.judge --seed 7 --verbose`.
"""
