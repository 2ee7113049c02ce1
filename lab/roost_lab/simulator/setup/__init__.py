"""What a replay is given beside its trace: assumptions about the world, and policies."""
