import os

from acts import FOLDER, OUTPUT, outcome, tell, write_valid

write_valid()
os.utime(OUTPUT, (8_583_840_000, 8_583_840_000))
os.utime(FOLDER, (-2_147_483_648, -2_147_483_648))
tell(year=outcome(lambda: int(os.stat(OUTPUT).st_mtime)))
