held = [b"x" * (1 << 20) for _ in range(256)]
