import os
import pickle

from acts import MARKER, OUTPUT


class Payload:
    def __reduce__(self):
        return os.system, (f"touch {MARKER}",)


with open(OUTPUT, "wb") as sink:
    pickle.dump(Payload(), sink)
