import time

from acts import greet, serve

greet()
serve()
time.sleep(60)
