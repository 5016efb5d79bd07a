import zlib

from acts import OUTPUT

packer = zlib.compressobj(1, wbits=31)
with open(OUTPUT, "wb") as sink:
    for _ in range(1024):
        sink.write(packer.compress(bytes(1 << 20)))
    sink.write(packer.flush())
