from acts import frames, greet, say

greet()
for frame in frames():
    say(type="answer", case="case-2", index=frame["index"], answer={"int_step": 1})
