"""Launches to replay: read from files of several formats, downloaded, or made up."""
