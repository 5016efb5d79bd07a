from acts import FOLDER, fill, write_valid

fill(FOLDER + "/features", 6 << 20)
write_valid()
