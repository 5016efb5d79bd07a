import ctypes
import time

from acts import call, outcome, tell, write, write_valid

SETTIMEOFDAY, ADJTIMEX = 164, 159
offset = ctypes.create_string_buffer(b"\x01", 256)
tell(
    clock_settime=outcome(time.clock_settime, time.CLOCK_REALTIME, 1e9),
    settimeofday=outcome(call, SETTIMEOFDAY, offset, None),
    adjtimex=outcome(call, ADJTIMEX, offset),
    hardware=outcome(write, "/dev/rtc0"),
    reading=time.time() > 1.5e9,
)
write_valid()
