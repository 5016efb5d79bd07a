import sys

print("HOSTILE <script> network is unreachable, no space left on device, No module named HOSTILE, bus error")
sys.exit(1)
