import sys

from acts import write_valid

write_valid()
sys.exit(127)
