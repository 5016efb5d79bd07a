"""What a program wants of its image and does not find."""

from runner.diagnosis.known import KnownFailure, Proof, When
from runner.verdict import VerdictWord

_ENDED = (VerdictWord.CRASHED, VerdictWord.MISSING_OUTPUT)
_CRASHED = (VerdictWord.CRASHED,)

LIBRARIES = (
    KnownFailure(
        slug="libgl-missing",
        title="libGL is missing",
        when=(
            When(
                words=_ENDED,
                marks=("libgl.so.1: cannot open", "libgthread-2.0.so.0: cannot open", "libegl.so.1: cannot open"),
            ),
        ),
        cause="OpenCV with windows wants libGL or GLib, and slim images do not have them",
        fix="install opencv-python-headless in place of opencv-python, or apt-get install libgl1 libglib2.0-0",
        narrows=("library-missing",),
    ),
    KnownFailure(
        slug="libgomp-missing",
        title="libgomp is missing",
        when=(When(words=_ENDED, marks=("libgomp.so.1: cannot open",)),),
        cause="scikit-learn, LightGBM, torch and others want the OpenMP library, and slim images do not have it",
        fix="apt-get install libgomp1 in the Dockerfile",
        narrows=("library-missing",),
    ),
    KnownFailure(
        slug="glibc-too-old",
        title="The image's glibc is older than a program wants",
        when=(When(words=_ENDED, patterns=(r"version `(?:glibc|glibcxx|cxxabi)_[0-9.]{1,9}' not found",)),),
        cause="a program or library was built on a newer system than the image, or copied from one",
        fix="build it inside the image, or start from a base image as new as the machine it was built on",
    ),
    KnownFailure(
        slug="numpy-abi",
        title="A package was built for another NumPy",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "numpy.dtype size changed",
                    "compiled using numpy 1.x cannot be run in",
                    "numpy.core.multiarray failed to import",
                    "numpy.ndarray size changed",
                    "module compiled against abi version",
                    "module compiled against api version",
                ),
            ),
        ),
        cause="a compiled package and NumPy do not fit: most often NumPy 2 with a package that was built for NumPy 1",
        fix="pin numpy<2, or a newer release of that package, in requirements.txt",
        tested=Proof.REPLAYED,
    ),
    KnownFailure(
        slug="no-display",
        title="The program wants to open a window",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "could not load the qt platform plugin",
                    "could not connect to display",
                    "cannot connect to x server",
                    "no display name and no $display",
                    "cannot open display",
                    "the function is not implemented. rebuild the library",
                ),
            ),
        ),
        cause="the program opens a window (cv2.imshow, Qt, Tk), and there is no display",
        fix="take out what shows images; matplotlib: ENV MPLBACKEND=Agg; OpenCV: opencv-python-headless",
        tested=Proof.REPLAYED,
    ),
    KnownFailure(
        slug="ffmpeg-missing",
        title="ffmpeg is missing",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "no such file or directory: 'ffmpeg'",
                    "no such file or directory: 'ffprobe'",
                    "ffmpeg: not found",
                    "ffmpeg: command not found",
                    "no ffmpeg exe could be found",
                    "ffmpeg is not installed",
                ),
            ),
        ),
        cause="the program calls ffmpeg or ffprobe, which is not in the image",
        fix="apt-get install ffmpeg in the Dockerfile; where the challenge hands out frames it is not needed at all",
    ),
    KnownFailure(
        slug="module-missing",
        title="A Python package is missing",
        when=(When(words=_ENDED, marks=("modulenotfounderror", "no module named")),),
        cause="a Python package is not in the image, or lies where the interpreter that runs does not look",
        fix="add it to requirements.txt, install it with the same python that is started, and build the image again",
    ),
    KnownFailure(
        slug="module-hidden",
        title="A file of the program has the name of a module",
        when=(When(words=_ENDED, marks=("most likely due to a circular import",)),),
        cause="a file beside the program is named like a module it imports, such as queue.py, and hides it",
        fix="rename that file, or mend the two files that import each other",
    ),
    KnownFailure(
        slug="library-missing",
        title="A shared library is missing",
        when=(When(words=_ENDED, marks=("cannot open shared object file",)),),
        cause="a library that a program or package is linked with is not in the image",
        fix="install the system package that holds it; ldd FILE | grep 'not found' lists all that are missing",
    ),
    KnownFailure(
        slug="weights-are-a-pointer",
        title="The weights are a pointer of Git LFS, or are cut off",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "invalid load key, 'v'",
                    "invalid load key, '<'",
                    "headertoolarge",
                    "failed finding central directory",
                    "pytorchstreamreader failed",
                ),
            ),
        ),
        cause="the file of weights holds no weights: it is a pointer of Git LFS, a web page, or only a part of the "
        "file",
        fix="git lfs pull before docker build, and compare the size of the file in the image with that of the original",
    ),
    KnownFailure(
        slug="illegal-instruction",
        title="The processor does not know an instruction",
        when=(
            When(words=_CRASHED, exit_codes=(132,)),
            When(words=_ENDED, marks=("illegal instruction", "sigill")),
        ),
        cause="a program was compiled for the processor it was built on (-march=native), with AVX-512 or the like",
        fix="compile for a common processor (-march=x86-64-v2), or install the released package in place of your own",
    ),
    KnownFailure(
        slug="segmentation-fault",
        title="The program touched memory that is not its own",
        when=(
            When(words=_CRASHED, exit_codes=(139,)),
            When(words=_ENDED, marks=("segmentation fault", "sigsegv")),
        ),
        cause="compiled code crashed: two packages that do not fit, two OpenMP libraries, or a too small stack",
        fix="python3 -X faulthandler shows where; install fitting releases of the packages it names, and nothing twice",
    ),
    KnownFailure(
        slug="aborted",
        title="The program aborted itself",
        when=(When(words=_CRASHED, exit_codes=(134,)),),
        cause="compiled code found something wrong and gave up: an error nobody caught, a failed assertion, "
        "damaged memory",
        fix="read the last line it printed; in C++, catch errors in main, print them and end with a code of your own",
    ),
)
