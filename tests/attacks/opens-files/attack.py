from acts import OUTPUT, outcome, tell, write_valid

write_valid()
held = []


def hold():
    while True:
        held.append(open(OUTPUT))


found = outcome(hold)
held.clear()
tell(files=found)
