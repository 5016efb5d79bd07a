import os

import numpy as np
from PIL import Image

from acts import INPUT, OUTPUT

with Image.open(os.path.join(INPUT, "00000.png")) as frame:
    values = np.asarray(frame).ravel()[:24]
print("pixels", *values)
with open(OUTPUT, "w") as sink:
    print(f"int_time,int_step,{' '.join(map(str, values))}", file=sink)
    for number, value in enumerate(values):
        print(f"{number},{value},x", file=sink)
