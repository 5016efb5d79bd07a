"""Spreads jobs over what a host has."""
