from acts import answer, frames, greet

greet()
waiting = None
for frame in frames():
    if waiting is not None:
        answer(waiting, 3)
    waiting = frame["index"]
answer(waiting, 3)
