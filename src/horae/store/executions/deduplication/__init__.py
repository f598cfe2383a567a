"""Scripts of unique keys, debouncing, batching and cached results."""
