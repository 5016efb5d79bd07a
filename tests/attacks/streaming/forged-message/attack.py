from acts import frames, greet, say

greet()
for _ in frames():
    say(type="end")
