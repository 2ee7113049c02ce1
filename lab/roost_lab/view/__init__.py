"""The cluster at one moment of the record, as a page that is served to a browser."""
