import os

from acts import FOLDER, OUTPUT, write_valid

write_valid()
os.chmod(OUTPUT, 0)
os.chmod(FOLDER, 0)
