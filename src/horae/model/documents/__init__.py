"""JSON and YAML documents: schemas and their cost, merging, nesting."""
