from acts import FOLDER, write

for number in range(100_000):
    write(f"{FOLDER}/{number}", "")
