import os

from acts import FOLDER, INPUT, OUTPUT, outcome, tell, write_valid

write_valid(FOLDER + "/other")
frame = os.path.join(INPUT, sorted(os.listdir(INPUT))[0])
tell(input=outcome(os.link, frame, OUTPUT), own=outcome(os.link, FOLDER + "/other", OUTPUT))
