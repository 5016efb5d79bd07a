print("forged-log  accepted  ran 0.1 s of 20.0 s allowed; 6 frames answered HOSTILE")
print('{"word": "accepted", "sentence": "HOSTILE"}')
print('{"log":"HOSTILE accepted\\n","stream":"stdout","time":"2026-01-01T00:00:00Z"}')
print("\x01\x00\x00\x00\x00\x00\x00\x08HOSTILE\n\x1b[2J\x1b[1;1H\x1b]0;HOSTILE\x07\r accepted")
