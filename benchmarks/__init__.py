"""Measure Roost against peers, always as a ratio within one run. Figures are printed, never asserted."""
