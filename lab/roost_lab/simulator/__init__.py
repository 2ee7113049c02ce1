"""Replay launches under a values file, in a world of discrete events, and measure what users and
operators see.
"""
