from acts import outcome, tell, write

PREFERENCE = "/proc/self/oom_score_adj"
tell(never=outcome(write, PREFERENCE, "-1000"), rather=outcome(write, PREFERENCE, "500"))
held = [b"x" * (1 << 20) for _ in range(256)]
