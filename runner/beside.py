"""Does something on a thread of its own for as long as a block lasts."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor


@contextlib.contextmanager
def beside(work: Callable[[threading.Event], None], *, name: str) -> Iterator[None]:
    """Run ``work`` beside the block.

    Args:
        work: Returns soon after the event it is given was set, which is when the block ends.
        name: Of the thread.

    Raises:
        BaseException: Whatever ``work`` raised, at the end of a block that raised nothing itself.
    """
    over = threading.Event()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix=name) as pool:
        working = pool.submit(work, over)
        try:
            yield
        finally:
            over.set()
        working.result()
