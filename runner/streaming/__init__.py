"""Streamed cases: a container is given a frame only once it has answered the one before."""
