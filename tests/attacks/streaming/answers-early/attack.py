from acts import answer, frames, greet

greet()
for frame in frames():
    answer(frame["index"])
    answer(frame["index"] + 1)
