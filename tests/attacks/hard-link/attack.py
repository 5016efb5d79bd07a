import os

from acts import FOLDER, INPUT, OUTPUT, outcome, tell, write_valid

write_valid(FOLDER + "/-other")
frame = os.path.join(INPUT, "00000.png")
tell(input=outcome(os.link, frame, OUTPUT), own=outcome(os.link, FOLDER + "/-other", OUTPUT))
