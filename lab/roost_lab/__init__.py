"""The laboratory of Roost: what records starts, explains and reports on them, and replays
launches.
"""
