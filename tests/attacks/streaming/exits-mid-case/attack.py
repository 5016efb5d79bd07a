from acts import answer, frames, greet

greet()
for frame in frames():
    if frame["index"] == 2:
        break
    answer(frame["index"])
