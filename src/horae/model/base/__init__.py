"""Small values and helpers that the whole model uses: ids, instants, durations, paths, pages."""
