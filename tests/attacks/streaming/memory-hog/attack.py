from acts import frames, greet

greet()
next(frames())
kept = [bytearray(16 << 20) for _ in range(16)]
