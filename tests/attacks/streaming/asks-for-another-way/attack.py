from acts import greet, serve

greet("inline")
serve()
