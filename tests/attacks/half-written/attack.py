from acts import FOLDER, OUTPUT, fill, outcome, write

write(OUTPUT, "int_time,int_step\n0,1\n1,1\n2,")
outcome(fill, FOLDER + "/features")
