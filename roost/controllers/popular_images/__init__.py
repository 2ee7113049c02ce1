"""Popular images: bring what many users run to nodes that lack it."""
