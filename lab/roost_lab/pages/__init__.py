"""Pages that need no network: HTML, tables, plots, and how times and sizes are written."""
