from acts import frames, greet

greet()
for _ in frames():
    pass
