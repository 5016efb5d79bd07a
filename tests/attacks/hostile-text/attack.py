from acts import OUTPUT

EVIL = "<script>alert('HOSTILE')</script>\x1b[31m\x1b]0;HOSTILE\x07\u202e=HYPERLINK(1)"
print(EVIL)
with open(OUTPUT, "w") as sink:
    print(f"int_time,{EVIL}", f"{EVIL},{EVIL}", f"0,{EVIL}", "1,HOSTILE", sep="\n", file=sink)
