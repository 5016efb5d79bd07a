from acts import outcome, tell, write

tell(
    never=outcome(write, "/proc/self/oom_score_adj", "-1000"), rather=outcome(write, "/proc/self/oom_score_adj", "500")
)
held = []
while True:
    held.append(b"x" * (1 << 20))
