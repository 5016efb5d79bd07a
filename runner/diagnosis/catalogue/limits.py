"""What a job may use of time, memory, processes and space."""

from runner.diagnosis.facts import Log
from runner.diagnosis.known import KnownFailure, When
from runner.verdict import VerdictWord

_ENDED = (VerdictWord.CRASHED, VerdictWord.MISSING_OUTPUT)
_CRASHED = (VerdictWord.CRASHED,)
_LATE = (VerdictWord.TIMED_OUT,)
_MEMORY = (VerdictWord.OUT_OF_MEMORY,)
_MUCH = (VerdictWord.TOO_MUCH_OUTPUT,)

LIMITS = (
    KnownFailure(
        slug="nearly-in-time",
        title="The program finished, a little late",
        when=(When(words=_LATE, killed=False),),
        cause="the program is nearly fast enough: it reads the input twice, loads the model for each frame or writes "
        "intermediate files",
        fix="read each frame once, load the model once, before the first frame, and keep results in memory",
    ),
    KnownFailure(
        slug="progress-bar",
        title="The program prints a line for every step",
        when=(When(words=_LATE, printed=(Log.CUT,), marks=("it/s", "s/it", "%|", "eta ")),),
        cause="the program prints a progress bar or a line for every frame, and waits until each is taken",
        fix="print a line a hundred frames at most: tqdm(…, mininterval=30), or disable=True",
    ),
    KnownFailure(
        slug="child-out-of-memory",
        title="A child process was killed for memory",
        when=(When(words=_MEMORY, survived=True),),
        cause="worker processes hold copies of the data or of the model, and together they were too large",
        fix="use fewer workers (num_workers=0 or 1), and load the model in one process only",
    ),
    KnownFailure(
        slug="killed-from-inside",
        title="Something in the container killed the program",
        when=(When(words=_CRASHED, exit_codes=(137, 143)),),
        cause="the program was killed by a signal that neither the runner sent nor a lack of memory: by itself, a "
        "child, "
        "a watchdog, or a time limit in a script of the image",
        fix="look for kill, timeout and os._exit in the image, and end with a code that tells why",
    ),
    KnownFailure(
        slug="shared-memory",
        title="Shared memory was too small",
        when=(
            When(words=_CRASHED, exit_codes=(135,)),
            When(
                words=(*_ENDED, *_MEMORY),
                marks=("bus error", "unable to open shared memory", "insufficient shared memory", "/dev/shm"),  # noqa: S108
            ),
        ),
        cause="what data loader workers pass to each other did not fit into /dev/shm",
        fix="use fewer workers or num_workers=0, or torch.multiprocessing.set_sharing_strategy('file_system')",
    ),
    KnownFailure(
        slug="disk-full",
        title="A place that is limited in size was full",
        when=(When(words=_ENDED, marks=("no space left on device",)),),
        cause="the output folder, /tmp or /dev/shm was full; /tmp lies in memory and is small",
        fix="do not unpack or copy the input, write less, and delete what is not needed any more",
    ),
    KnownFailure(
        slug="file-too-large",
        title="One file grew past what a file may have",
        when=(
            When(words=_MUCH, exit_codes=(153,)),
            When(words=_ENDED, marks=("file too large", "[errno 27]")),
        ),
        cause="the program wrote one file larger than the output folder or /tmp may hold",
        fix="write predictions only, a label a frame; no frames, features or scores of every class",
    ),
    KnownFailure(
        slug="output-full",
        title="The output folder was full",
        when=(When(words=_MUCH, full=True),),
        cause="the program writes more into the output folder than predictions: frames, features, logs, or many files",
        fix="write intermediate files to /tmp and only the file that is due to the output folder",
        narrows=("disk-full",),
    ),
    KnownFailure(
        slug="too-many-open-files",
        title="The program keeps too many files open",
        when=(When(words=_ENDED, marks=("too many open files", "[errno 24]")),),
        cause="files are opened and never closed, most often one a frame",
        fix="open them with 'with', close images (Image.open(…) in a with block) and videos (release())",
    ),
    KnownFailure(
        slug="cannot-start-thread",
        title="The program starts too many threads or processes",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "can't start new thread",
                    "resource temporarily unavailable",
                    "pthread_create failed",
                    "thread creation failed",
                    "failed to create thread",
                ),
            ),
        ),
        cause="the program starts more threads and processes than are allowed; libraries start one for each of the "
        "host's processors, in every worker",
        fix="ENV OMP_NUM_THREADS=4, torch.set_num_threads(4), and no more workers than processors",
    ),
    KnownFailure(
        slug="allocation-refused",
        title="The program asks for far too much memory at once",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "unable to allocate",
                    "memoryerror",
                    "std::bad_alloc",
                    "defaultcpuallocator: can't allocate memory",
                ),
            ),
        ),
        cause="the program asks for an array that no machine could hold, as all frames of a video in one",
        fix="read the sequence frame by frame, and convert to float in batches",
    ),
)
