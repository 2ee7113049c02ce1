"""Keep records in a database: their classes, the schema and its migrations."""
