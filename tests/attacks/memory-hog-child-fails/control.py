from acts import write_valid

held = [b"x" * (1 << 20) for _ in range(64)]
write_valid()
