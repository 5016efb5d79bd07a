from acts import answer, frames, greet

greet()
for frame in frames():
    answer(frame["index"])
    if frame["index"] == 2:
        answer(2, 3)
