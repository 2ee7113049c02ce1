"""Find every fault in values: against the schema, and across keys."""
