"""Run replays: which ones, on which processes, with their results kept and summed up."""
