import time

from acts import greet

greet("inline")
time.sleep(60)
