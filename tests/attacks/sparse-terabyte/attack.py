import os

from acts import OUTPUT, outcome, tell, write_valid

write_valid()
tell(terabyte=outcome(os.truncate, OUTPUT, 1 << 40), as_much_as_may_be=outcome(os.truncate, OUTPUT, 16 << 20))
