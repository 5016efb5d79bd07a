import os

from acts import FOLDER

names = [
    b"a\nb",
    b"\xff\xfe",
    b"-rf",
    b"x" * 255,
    b"<script>alert('HOSTILE')<",
    b"\x1b]0;HOSTILE\x07",
    "\u202eHOSTILE".encode(),
]
for name in names:
    open(os.path.join(FOLDER.encode(), name), "w").close()
