from acts import answer, greet, serve

answer(0)
greet()
serve()
