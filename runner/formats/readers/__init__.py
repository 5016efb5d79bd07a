"""Bounded readers of untrusted bytes; they run in a confined child."""
