"""Headroom: how many placeholders each set has, by the clock."""
