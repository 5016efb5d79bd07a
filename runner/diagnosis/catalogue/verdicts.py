"""What is known when nothing but the verdict is known; shown where nothing else fits."""

from runner.diagnosis.known import KnownFailure, When
from runner.verdict import VerdictWord

VERDICTS = (
    KnownFailure(
        slug="length-dependent",
        title="Answers depend on how long the sequence is",
        when=(When(words=(VerdictWord.NOT_CAUSAL,), length_dependent=True),),
        cause="the answers change with the number of frames: padding to the longest, windows counted from the end, "
        "or a "
        "batch whose size is that of the sequence",
        fix="handle each frame as it comes, as if the length were not known",
        narrows=("looks-ahead",),
    ),
    KnownFailure(
        slug="looks-ahead",
        title="Answers depend on later frames",
        when=(When(words=(VerdictWord.NOT_CAUSAL,)),),
        cause="an answer depends on frames that come after it: a bidirectional model, a centred filter, or "
        "normalisation "
        "over the whole sequence",
        fix="let the answer for frame t use frames up to t only: bidirectional=False, causal convolutions, running "
        "means",
    ),
    KnownFailure(
        slug="out-of-memory",
        title="Memory was not enough",
        when=(When(words=(VerdictWord.OUT_OF_MEMORY,)),),
        cause="the program keeps more in memory than the challenge allows; files in /tmp and /dev/shm count",
        fix="read the sequence frame by frame, keep no frames, and load the model once",
    ),
    KnownFailure(
        slug="too-slow",
        title="Time was not enough",
        when=(When(words=(VerdictWord.TIMED_OUT,)),),
        cause="the method is slower than the challenge's budget, or waits for something that never comes",
        fix="time it on a short sequence: loading the model counts too",
    ),
    KnownFailure(
        slug="too-much-output",
        title="The output was too large",
        when=(When(words=(VerdictWord.TOO_MUCH_OUTPUT,)),),
        cause="the program writes more than predictions: frames, features or logs",
        fix="write intermediate files to /tmp, and one row a frame to the output",
    ),
    KnownFailure(
        slug="wrote-nothing",
        title="The program wrote nothing",
        when=(When(words=(VerdictWord.MISSING_OUTPUT,)),),
        cause="the program wrote nothing, or wrote to another path than the one it was given",
        fix="write to the path that is passed as the output argument, and end with an error code when something fails",
    ),
    KnownFailure(
        slug="bad-output",
        title="The file does not have the form that is due",
        when=(When(words=(VerdictWord.BAD_OUTPUT,)),),
        cause="the file does not have the form the challenge asks for",
        fix="write the header and one row for every frame, in order, with labels the challenge knows; "
        "see: proctor challenge show",
    ),
)
