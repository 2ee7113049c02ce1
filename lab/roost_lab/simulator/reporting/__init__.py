"""Show a sweep: page, tables, terminal and JSON."""
