"""Runs one of our own functions on bytes we do not trust, in a child that can do nothing but answer.

A parser is where a stranger's bytes meet our code. Whatever they do to it must stay in a process that holds
nothing worth taking and ends soon. Three processes take part:

``parent``
    The program itself. It opens the file, passes the open descriptor on, waits, and checks the answer. It
    never parses the file and never unpickles anything: an answer is JSON read strictly, and plain arrays.
``server``
    Forked children start in a millisecond or two where a fresh interpreter needs a quarter of a second. But
    a fork copies the whole of its parent, threads' locks and references included. So children are forked
    from a server that has one thread, an environment of its own, our modules loaded, and has never seen a
    byte of data: even a child that is taken over finds no reference in its memory.
``child``
    Closes everything but its descriptors and the pipe of its answer, limits itself, gives up root, and only
    then touches the bytes. The first byte of an answer says that this far all went well. Without it the
    failure is the host's, or ours; after it, the child's: no byte of a stranger can turn one into the other.

What a child cannot do: open a file that its uid may not (as root every live child has a uid of its own, so
that none can signal another), write to a file, start a process or a thread, outlive its deadline, its parent
or the server, use more memory or answer more than it may. What remains: without root there is no other uid
to change to, so it may read what the user may read; and it may still make network sockets. Its answer is
checked, so both only matter together with a fault in the interpreter or in NumPy.

The organisers' own scorer runs with ``Privileges.KEEP``: their files are theirs to read, but memory,
processor and wall time are limited all the same.

Functions take the request and the descriptors, in that order, and return a ``Reply``. They must read with
``pread`` or seek first: where the server itself dies, it is started again and the call repeated, once.
"""

from runner.confine.contract import ConfinedFailure, FailureKind, JsonValue, Privileges, Reply
from runner.confine.parent import Confine

__all__ = ["Confine", "ConfinedFailure", "FailureKind", "JsonValue", "Privileges", "Reply"]
