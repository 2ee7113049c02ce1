"""Show a sweep.

`page.py` makes the page, with `figures.py` and `tables.py`. `terminal.py` is for a terminal,
`formats.py` for programs (JSON). `amounts.py` writes figures with their units, `context.py` says
what readers must know before they believe them.
"""
