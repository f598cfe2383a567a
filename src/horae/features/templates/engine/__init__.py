"""Writing templates, and changing the jobs made from them."""
