"""From `templates/` to the chart's Go templates.

`chart.py` writes all files, `template.py` compiles the layout and statements of one,
`expressions.py` its expressions; `shape.py` knows which keys and types the values can have.
"""
