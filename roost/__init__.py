"""Roost's programs: controllers, recorder and simulator, the pages they draw, and the command line."""
