"""Find every fault in values.

`schema.py` checks values against the schema quickly, `schema_faults.py` explains what doesn't match. `lint.py` checks
across keys: `classes.py`, `controllers.py`, `events.py`, `placeholders.py`, `reach.py` (pullers and nodes),
`recorder.py`, `scheduler.py`, `scheduler_gates.py`, `sizes.py` and `terms.py` check their subject and write to a
`report.Report`.
`all_faults.py` lints also values that don't match the schema.
"""
