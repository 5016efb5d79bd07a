from acts import answer, frames, greet

greet()
for frame in frames():
    if frame["index"] == 1:
        answer(1)
        answer(0)
