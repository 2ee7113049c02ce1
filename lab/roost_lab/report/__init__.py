"""Sum the records up as a report: queries, tables, figures, page."""
