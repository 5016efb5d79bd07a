from acts import answers, frames, greet

greet()
for frame in frames():
    answers(frame["index"], frame["index"] + 1)
