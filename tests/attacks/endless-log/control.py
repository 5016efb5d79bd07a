from acts import write_valid

for _ in range(1000):
    print("x" * 1000)
write_valid()
