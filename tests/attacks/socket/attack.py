import os
import socket

from acts import FOLDER, OUTPUT

os.chdir(FOLDER)
socket.socket(socket.AF_UNIX).bind(os.path.basename(OUTPUT))
