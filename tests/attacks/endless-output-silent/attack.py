from acts import FOLDER, fill, outcome

outcome(fill, FOLDER + "/features")
