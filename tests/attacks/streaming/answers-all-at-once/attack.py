from acts import answers, frames, greet

greet()
next(frames())
answers(*range(6))
