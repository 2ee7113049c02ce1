"""Hold values against chart/values.schema.json: `check.py` asks jsonschema-rs, `explain.py` words
the faults.
"""
