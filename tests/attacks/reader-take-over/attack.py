import json
import os
import pickle
import struct

from acts import MARKER, OUTPUT


class Payload:
    def __reduce__(self):
        return os.system, (f"touch {MARKER}",)


npy = b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', 'fortran_order': False, 'shape': (6,), }".ljust(127) + b"\n" + bytes(48)
header = json.dumps({"header": {"problems": [], "count": 0}, "arrays": [["int_step", len(npy)]]}).encode()
with open(OUTPUT, "wb") as sink:
    sink.write(b"R" + struct.pack("<I", len(header)) + header + npy + pickle.dumps(Payload()))
