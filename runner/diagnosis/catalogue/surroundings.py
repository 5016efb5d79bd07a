"""What a container may not reach, read or write."""

from runner.diagnosis.known import KnownFailure, When
from runner.verdict import VerdictWord

_ENDED = (VerdictWord.CRASHED, VerdictWord.MISSING_OUTPUT)
_READ_ONLY = "read-only file system"
_CACHES = r"(?:cache|hub|huggingface|matplotlib|numba|\.keras|\.config)"

SURROUNDINGS = (
    KnownFailure(
        slug="no-network",
        title="The program reaches for the network",
        when=(
            When(
                words=(*_ENDED, VerdictWord.TIMED_OUT),
                marks=(
                    "name resolution",
                    "network is unreachable",
                    "failed to resolve",
                    "could not resolve",
                    "urlopen error",
                    "max retries exceeded",
                    "name or service not known",
                    "we couldn't connect to",
                ),
            ),
        ),
        cause="the program downloads something, most often weights, and there is no network by rule",
        fix="put weights and packages into the image when it is built, and load them from there "
        "(pretrained=False; ENV HF_HUB_OFFLINE=1)",
    ),
    KnownFailure(
        slug="roots-home",
        title="The program reads or writes root's home",
        when=(
            When(
                words=_ENDED,
                patterns=(
                    rf"(?:permission denied|{_READ_ONLY}): ['\"]?/root\b",
                    rf"/root/[^\n]{{0,200}}(?:permission denied|{_READ_ONLY})",
                ),
            ),
        ),
        cause="files lie in /root, as weights in /root/.cache do that root downloaded while the image was built; the "
        "container runs as another user, and its HOME is /tmp",
        fix="put them into a folder that all may read, and name it: ENV TORCH_HOME=/opt/torch HF_HOME=/opt/hf, "
        "then RUN chmod -R a+rX /opt",
        narrows=("unwritable-cache", "permission-denied", "read-only"),
    ),
    KnownFailure(
        slug="unwritable-cache",
        title="A library cannot write its cache",
        when=(
            When(
                words=_ENDED,
                marks=("cannot cache function", "trying to write in your cache folder"),
                patterns=(rf"(?:{_READ_ONLY}|permission denied): ['\"][^'\"\n]{{0,200}}{_CACHES}",),
            ),
        ),
        cause="a library writes a cache where nothing can be written",
        fix="point it to /tmp with its variable: XDG_CACHE_HOME, TORCH_HOME, HF_HOME, MPLCONFIGDIR or NUMBA_CACHE_DIR",
        narrows=("permission-denied", "read-only"),
    ),
    KnownFailure(
        slug="read-only",
        title="The program writes where it may not",
        when=(When(words=_ENDED, marks=(_READ_ONLY,)),),
        cause="the program writes outside the output folder, /tmp and HOME, and the rest is read-only, the input "
        "included",
        fix="write results to the path that is passed as the output argument and everything else to /tmp",
    ),
    KnownFailure(
        slug="permission-denied",
        title="The program may not read or write a file",
        when=(When(words=_ENDED, marks=("permission denied",)),),
        cause="the program runs as an ordinary user, not as the image's, and may not read or write a file",
        fix="make files of the image readable for all (RUN chmod -R a+rX /app) and write to the output folder or "
        "/tmp only",
    ),
    KnownFailure(
        slug="relative-path",
        title="A file is looked for by a relative path",
        when=(
            When(
                words=_ENDED,
                patterns=(r"no such file or directory: b?['\"](?!/)[^'\"\n]{0,100}[./][^'\"\n]{0,200}['\"]",),
            ),
        ),
        cause="a file is opened by a relative path, which counts from the image's WORKDIR and not from the program",
        fix="set WORKDIR in the Dockerfile, or use Path(__file__).parent / 'weights.pt'",
    ),
)
