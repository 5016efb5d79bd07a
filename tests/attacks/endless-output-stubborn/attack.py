from acts import FOLDER, fill, outcome

while True:
    outcome(fill, FOLDER + "/features")
