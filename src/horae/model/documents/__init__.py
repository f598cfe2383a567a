"""JSON and YAML documents: schemas and their cost, merge patches, nesting."""
