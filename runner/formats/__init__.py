"""Prediction formats: bounded readers that list every problem."""
