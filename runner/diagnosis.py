"""The likely cause of a bad verdict and how to mend it, from a catalogue of known failures.

A hint decides nothing: it is added to a verdict that was reached without it. Facts are matched first; the text of a log
only where the facts fit.
"""

from dataclasses import dataclass

from runner.verdict import Hint, VerdictWord


@dataclass(frozen=True, kw_only=True)
class KnownFailure:
    """One entry of the catalogue.

    Attributes:
        words: Verdicts it can explain.
        marks: Texts of a log, lower case; any of them. Empty: the verdict alone is enough.
        cause: What is likely behind it.
        fix: What to do.
    """

    words: tuple[VerdictWord, ...]
    marks: tuple[str, ...]
    cause: str
    fix: str


_ENDED = (VerdictWord.CRASHED, VerdictWord.MISSING_OUTPUT)

CATALOGUE = (
    KnownFailure(
        words=(*_ENDED, VerdictWord.TIMED_OUT),
        marks=(
            "name resolution",
            "network is unreachable",
            "failed to resolve",
            "could not resolve",
            "urlopen error",
            "max retries exceeded",
        ),
        cause="the program tries to reach the network, and there is none by rule",
        fix="put weights and packages into the image when it is built",
    ),
    KnownFailure(
        words=_ENDED,
        marks=("read-only file system",),
        cause="the program writes outside the output folder, /tmp and HOME, and the rest is read-only",
        fix="write results to the output folder and everything else to /tmp",
    ),
    KnownFailure(
        words=_ENDED,
        marks=("no space left on device",),
        cause="a place that is limited in size was full: the output folder, /tmp or /dev/shm",
        fix="write less, or delete what is not needed any more",
    ),
    KnownFailure(
        words=_ENDED,
        marks=("modulenotfounderror", "no module named"),
        cause="a Python package is not in the image",
        fix="add it to requirements.txt and build the image again",
    ),
    KnownFailure(
        words=_ENDED,
        marks=("exec format error",),
        cause="the program is built for another architecture",
        fix="build the image for the challenge's platform: docker build --platform linux/amd64",
    ),
    KnownFailure(
        words=_ENDED,
        marks=("^m: no such file", "\r': no such file", "bad interpreter"),
        cause="the entry point script has Windows line ends",
        fix="save it with Unix line ends (dos2unix) and build the image again",
    ),
    KnownFailure(
        words=(*_ENDED, VerdictWord.OUT_OF_MEMORY),
        marks=("bus error", "unable to open shared memory", "shared memory"),
        cause="shared memory was too small for what data loader workers pass to each other",
        fix="use fewer workers, or num_workers=0",
    ),
    KnownFailure(
        words=_ENDED,
        marks=("cuda out of memory", "outofmemoryerror: cuda"),
        cause="the GPU's memory was not enough",
        fix="use smaller batches, or half precision",
    ),
    KnownFailure(
        words=_ENDED,
        marks=(
            "no nvidia driver",
            "cuda driver version",
            "no cuda-capable device",
            "torch not compiled with cuda",
            "libcuda.so",
        ),
        cause="the program wants a CUDA device and found none it can use",
        fix="fall back to the CPU where there is no GPU: device = 'cuda' if torch.cuda.is_available() else 'cpu'",
    ),
    KnownFailure(
        words=_ENDED,
        marks=("permission denied",),
        cause="the program runs as an ordinary user, not as the image's, and may not read or write a file",
        fix="make files of the image readable for all (chmod -R a+rX) and write to the output folder or /tmp only",
    ),
    KnownFailure(
        words=_ENDED,
        marks=("can't start new thread", "resource temporarily unavailable"),
        cause="the program starts more threads and processes than are allowed",
        fix="set OMP_NUM_THREADS and the number of workers to the number of processors",
    ),
    KnownFailure(
        words=(VerdictWord.OUT_OF_MEMORY,),
        marks=(),
        cause="the program keeps more in memory than the challenge allows",
        fix="read the sequence frame by frame, and load the model once",
    ),
    KnownFailure(
        words=(VerdictWord.TIMED_OUT,),
        marks=(),
        cause="the method is slower than the challenge's budget, or waits for something that never comes",
        fix="time it on a short sequence: loading the model counts too",
    ),
    KnownFailure(
        words=(VerdictWord.MISSING_OUTPUT,),
        marks=(),
        cause="the program wrote nothing, or wrote to another path than the one it was given",
        fix="write to the path that is passed as the output argument, and end with an error code when something fails",
    ),
    KnownFailure(
        words=(VerdictWord.BAD_OUTPUT,),
        marks=(),
        cause="the file does not have the form the challenge asks for",
        fix="write the header and one row for every frame, in order, with labels the challenge knows; "
        "see: proctor challenge show",
    ),
    KnownFailure(
        words=(VerdictWord.TOO_MUCH_OUTPUT,),
        marks=(),
        cause="the program writes more than predictions: frames, features or logs",
        fix="write intermediate files to /tmp",
    ),
    KnownFailure(
        words=(VerdictWord.NOT_CAUSAL,),
        marks=(),
        cause="an answer depends on frames that come after it: a bidirectional model, a centred filter, or "
        "normalisation over the whole sequence",
        fix="let the answer for frame t use frames up to t only",
    ),
)


def diagnose(word: VerdictWord, log: bytes) -> tuple[Hint, ...]:
    """The first entry that fits, and none for a verdict that needs none.

    Args:
        word: The verdict.
        log: The end of the container's log; untrusted, only searched.
    """
    text = log.decode("utf-8", "replace").lower()
    for entry in CATALOGUE:
        if word in entry.words and (not entry.marks or any(mark in text for mark in entry.marks)):
            return (Hint(cause=entry.cause, fix=entry.fix),)
    return ()
