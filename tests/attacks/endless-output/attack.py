from acts import OUTPUT, fill

fill(OUTPUT, 1 << 40)
