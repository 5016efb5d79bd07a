import os
import signal

from acts import OUTPUT, write_valid

write_valid()
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
os.truncate(OUTPUT, 1 << 40)
