from acts import answer, frames, greet

greet()
next(frames())
for index in range(6):
    answer(index)
