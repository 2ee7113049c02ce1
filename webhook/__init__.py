"""Pod to JSON Patch, at admission."""
