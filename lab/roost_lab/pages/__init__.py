"""Pages that need no network, and how times and sizes are written.

`html_page.py` makes one file of sections with plots and tables: `table.py` has columns with units,
`drawing.py` the parts of figures, which the page's script draws. `phrases.py` writes times,
durations and sizes, `dates.py` converts stored times, `names.py` shortens names. The view's page is
`view.html`, `view.js` and `view.css`.
"""
