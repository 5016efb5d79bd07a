from acts import frames, greet, hello

greet()
for _ in frames():
    hello()
