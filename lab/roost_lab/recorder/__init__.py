"""Record what the scheduler decided and how each start went, in a database, from watches alone."""
