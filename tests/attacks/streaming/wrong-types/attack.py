from acts import frames, greet, say

greet()
for frame in frames():
    say(type="answer", index=str(frame["index"]), answer={"int_step": 1})
