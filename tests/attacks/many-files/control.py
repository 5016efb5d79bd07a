from acts import FOLDER, write, write_valid

for number in range(200):
    write(f"{FOLDER}/{number}", "")
write_valid()
