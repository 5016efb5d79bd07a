from acts import frames, greet

greet()
for frame in frames():
    print(frame, flush=True)
