from acts import frames, greet, say

greet()
for frame in frames():
    say(type="answer", index=frame["index"], answer={"int_step": 1}, verdict="accepted")
