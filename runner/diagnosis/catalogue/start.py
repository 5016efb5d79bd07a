"""What goes wrong before, or as soon as, a program starts."""

from runner.diagnosis.facts import Log
from runner.diagnosis.known import KnownFailure, When
from runner.job import StartRefusal
from runner.verdict import VerdictWord

_ENDED = (VerdictWord.CRASHED, VerdictWord.MISSING_OUTPUT)
_NOT_STARTED = (VerdictWord.CRASHED, VerdictWord.BAD_IMAGE)
_REFUSED = (VerdictWord.BAD_IMAGE,)

START = (
    KnownFailure(
        slug="wrong-architecture",
        title="The image is built for another platform",
        when=(When(words=_REFUSED, starts=(StartRefusal.OTHER_ARCHITECTURE,)),),
        cause="the image was built on a machine of another architecture, such as a Mac with an ARM processor",
        fix="build it for the challenge's platform: docker build --platform linux/amd64",
        foreseen=True,
    ),
    KnownFailure(
        slug="exec-format-error",
        title="A program in the image is for another architecture, or is a script without its first line",
        when=(When(words=_ENDED, marks=("exec format error", ": 1: \x7felf", "cannot execute binary file")),),
        cause="the program is built for another architecture than the image, or is a script that does not begin "
        "with #!",
        fix="build everything in the image for the challenge's platform, and begin scripts with #!/bin/sh or the like",
        foreseen=True,
    ),
    KnownFailure(
        slug="windows-line-ends",
        title="A script has Windows line ends",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "\\r': no such file",
                    "\\r’: no such file",
                    "\r': no such file",
                    "\r: no such file",
                    "^m: bad interpreter",
                    "$'\\r': command not found",
                    "\r: not found",
                ),
            ),
        ),
        cause="a script of the image has Windows line ends (CRLF), so its interpreter is looked for under a wrong name",
        fix="save it with Unix line ends (dos2unix, or *.sh text eol=lf in .gitattributes) and build the image again",
        foreseen=True,
    ),
    KnownFailure(
        slug="entry-point-missing",
        title="The entry point, or its interpreter, is not in the image",
        when=(
            When(words=_NOT_STARTED, exit_codes=(127,), patterns=(r"exec .{1,200} failed: no such file",)),
            When(words=_REFUSED, starts=(StartRefusal.NO_ENTRY_POINT, StartRefusal.NO_INTERPRETER)),
        ),
        cause="the program named by ENTRYPOINT or CMD is not in the image, or it is a script whose interpreter is not, "
        "as after #!/usr/bin/python where only python3 is there, or with Windows line ends behind the name",
        fix="name the program by its whole path, check it with docker run --entrypoint ls, and save scripts with Unix "
        "line ends",
        foreseen=True,
    ),
    KnownFailure(
        slug="entry-point-not-executable",
        title="The entry point may not be executed",
        when=(
            When(words=_NOT_STARTED, exit_codes=(126,), patterns=(r"exec .{1,200} failed: permission denied",)),
            When(words=_REFUSED, starts=(StartRefusal.NOT_EXECUTABLE,)),
        ),
        cause="the entry point is not marked as executable, or only root may execute it",
        fix="RUN chmod a+rx on it in the Dockerfile, also on the folders it lies in",
        narrows=("permission-denied",),
        foreseen=True,
    ),
    KnownFailure(
        slug="file-where-a-folder-is-due",
        title="The image has a file where a folder is mounted",
        when=(When(words=_REFUSED, starts=(StartRefusal.FILE_FOR_FOLDER, StartRefusal.NO_FOLDER)),),
        cause="the image has a file where the input, the output or /tmp goes, or its WORKDIR cannot be made",
        fix="remove that file in the Dockerfile, and leave the places of input and output to the runner",
    ),
    KnownFailure(
        slug="no-program",
        title="The image starts an interpreter without a program",
        when=(
            When(words=_ENDED, exit_codes=(1,), marks=("can't find '__main__' module",)),
            When(words=_ENDED, exit_codes=(126,), marks=(": is a directory",)),
        ),
        cause="the image starts python3 or a shell alone, which takes the input folder for its program",
        fix='name your program: ENTRYPOINT ["python3", "/app/predict.py"]; input and output come behind it',
    ),
    KnownFailure(
        slug="usage-error",
        title="The program does not take the arguments it is given",
        when=(When(words=_ENDED, exit_codes=(2,), marks=("usage:", "error: unrecognized arguments")),),
        cause="the program's own parser refuses its arguments: it wants others, or options with names",
        fix="take exactly the arguments that the challenge passes, in their order; see: proctor challenge show",
    ),
    KnownFailure(
        slug="wants-a-terminal",
        title="The program wants a terminal",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "inappropriate ioctl for device",
                    "not a tty",
                    "not a terminal",
                    "termios.error",
                    "could not find terminal",
                    "setupterm: ",
                ),
            ),
        ),
        cause="the program asks for a terminal, and there is none: it is not started with docker run -t",
        fix="take out what draws on a terminal or asks for its size: curses, os.get_terminal_size, getpass",
    ),
    KnownFailure(
        slug="waits-for-input",
        title="The program reads from its standard input",
        when=(When(words=_ENDED, marks=("eof when reading a line", "eoferror")),),
        cause="the program asks a question, and nobody answers: it is not started with docker run -i",
        fix="take out input() and prompts, and answer installers' questions when the image is built (-y)",
    ),
    KnownFailure(
        slug="silent-until-killed",
        title="The program printed nothing until its time was over",
        when=(When(words=(VerdictWord.TIMED_OUT,), killed=True, printed=(Log.NOTHING,)),),
        cause="the program waits for something that never comes, or works and keeps what it prints in a buffer",
        fix="print what it does as it does it (flush=True; in C++ std::endl) and look where it stops",
    ),
    KnownFailure(
        slug="locale",
        title="The image has no locale for the text that is read or written",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "unsupported locale setting",
                    "'ascii' codec can't encode",
                    "'ascii' codec can't decode",
                    "setlocale: lc_all: cannot change locale",
                ),
            ),
        ),
        cause="the program asks for a locale that is not in the image, or the image has none, so text is ASCII",
        fix="ENV LANG=C.UTF-8 in the Dockerfile, and open text with encoding='utf-8'",
    ),
    KnownFailure(
        slug="unknown-user",
        title="The user has no name",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "getpwuid(): uid not found",
                    "getpwuid_r",
                    "i have no name!",
                    "no such user",
                    "cannot find name for user id",
                ),
            ),
        ),
        cause="the container runs under a user id that /etc/passwd does not know, so the user has neither name nor "
        "home",
        fix="do not look the user up: take HOME and USER from the environment, where both are set",
    ),
    KnownFailure(
        slug="wants-to-be-root",
        title="The program does what only root may",
        when=(
            When(
                words=_ENDED,
                marks=("operation not permitted", "must be run as root", "are you root?", "requires root", "sudo: "),
            ),
        ),
        cause="the program changes owners, mounts, installs or asks for sudo, and it does not run as root",
        fix="do it when the image is built, and run the program as an ordinary user",
    ),
)
