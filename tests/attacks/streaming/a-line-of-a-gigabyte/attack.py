from acts import frames, greet, write

greet()
next(frames())
write(b'{"type":"answer","index":0,"answer":{"int_step":"')
for _ in range(1 << 10):
    write(b"x" * (1 << 20))
write(b'"}}\n')
