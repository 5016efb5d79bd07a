"""Measurements against a floor taken in the same run; never part of the tests."""
