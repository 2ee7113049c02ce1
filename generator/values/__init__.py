"""From values files and `--set` to one set of values that knows where each key was written."""
