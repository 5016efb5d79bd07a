"""Keeps every frame it has read, and a few more."""

held = []
while True:
    held.append(b"\x01" * (16 << 20))
