"""Keep records in a database: their classes, the schema and its migrations.

`records.py` has a class for each table, `migrations/` make them, and `schema.py` names them for
queries. `database.py` writes and forgets. `start_rows.py` keeps a row a start, `start_times.py`
says when a start begins and ends, and `phases.py` what is between. `views.py` and `sql/` are for
analysts.
"""
