"""Tell users what their server waits for, and about how long, by Events on its pod."""
