from acts import hello, read

read()
hello(protocol=2)
read()
