"""Views of statistics in the API."""
