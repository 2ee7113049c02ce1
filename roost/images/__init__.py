"""Which images an install needs, and what registries say of them."""
