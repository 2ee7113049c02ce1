"""Show a sweep: page, tables, terminal, JSON and CSV."""
