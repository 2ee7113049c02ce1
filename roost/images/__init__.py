"""Which images an install needs, and where their copies go."""
