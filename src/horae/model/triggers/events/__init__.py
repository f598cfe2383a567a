"""Triggers fired by events: values, filters, params and the decision."""
