"""Answers that go on: events as they happen, and contents that are sent piece by piece."""
