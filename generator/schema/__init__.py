"""Hold values against chart/values.schema.json: `check.py` quickly, `explain.py` with a fix for each fault."""
