"""Erasure: remove the data of one execution or person from store, files and archive."""
