import os

for _ in range(3):
    if os.fork() == 0:
        os.setsid()
while True:
    pass
