"""Triggers that listen for events: values, filters, parameters and the decision."""
