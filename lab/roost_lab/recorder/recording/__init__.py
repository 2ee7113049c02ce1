"""Turn what the API server's watches tell into records."""
