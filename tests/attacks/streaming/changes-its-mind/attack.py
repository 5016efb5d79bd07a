from acts import answer, frames, greet

greet()
for frame in frames():
    answer(0, frame["index"])
