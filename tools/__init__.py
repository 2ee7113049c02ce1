"""Programs for those who change Roost; none is part of what is installed."""
