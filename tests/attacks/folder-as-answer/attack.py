import os

from acts import OUTPUT, write_valid

os.mkdir(OUTPUT)
write_valid(OUTPUT + "/answer.csv")
