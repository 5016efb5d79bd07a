from acts import answer, frames, greet

TEXTS = ["<script>HOSTILE</script>", "\x1b[31mHOSTILE", "=cmd|HOSTILE", "1,1\n1,1", "\u202eHOSTILE", '"']
greet()
for frame in frames():
    answer(frame["index"], TEXTS[frame["index"]])
