"""What becomes of the file that is due."""

from runner.diagnosis.known import KnownFailure, When
from runner.job import IntakeRefusal, NameKind
from runner.verdict import VerdictWord

_MISSING = (VerdictWord.MISSING_OUTPUT,)
_UNSAFE = (VerdictWord.UNSAFE_OUTPUT,)

ANSWER = (
    KnownFailure(
        slug="crashed-after-the-answer",
        title="The program wrote a valid file and failed afterwards",
        when=(When(words=(VerdictWord.CRASHED,), answered=True),),
        cause="the file is complete and valid; what failed came after it: plots, clean-up, a second file, a "
        "worker's end",
        fix="take out what comes after the file, or catch its errors: a run counts only with exit code 0",
    ),
    KnownFailure(
        slug="letter-case",
        title="The name differs in upper and lower case",
        when=(When(words=_MISSING, names=(NameKind.LETTER_CASE,)),),
        cause="a file of that name is there, but with other upper and lower case letters",
        fix="use the path that is passed as the output argument as it is; do not call upper() or lower() on it",
    ),
    KnownFailure(
        slug="unfinished-file",
        title="The file was not renamed when it was whole",
        when=(When(words=_MISSING, names=(NameKind.UNFINISHED,)),),
        cause="a temporary file is there (.tmp, .part), and was never renamed to the name that is due",
        fix="rename it when it is whole (os.replace), and wait for the process that does so",
    ),
    KnownFailure(
        slug="wrong-extension",
        title="The name has another extension",
        when=(When(words=_MISSING, names=(NameKind.EXTENSION,)),),
        cause="a file of that name is there with another extension, with none, or with one more: "
        "numpy.save adds .npy, with_suffix() replaces what is there",
        fix="use the path that is passed as the output argument as it is, and add nothing to it",
    ),
    KnownFailure(
        slug="answer-in-a-folder",
        title="The file lies in a folder of its own",
        when=(When(words=_MISSING, names=(NameKind.FOLDER,)),),
        cause="the program made a folder inside the output folder and wrote into that",
        fix="write the file to the path that is passed as the output argument itself",
    ),
    KnownFailure(
        slug="wrong-name",
        title="The output folder holds files of other names",
        when=(When(words=_MISSING, names=(NameKind.STEM, NameKind.OTHER)),),
        cause="the program gives its file a name of its own, such as predictions.csv",
        fix="use the path that is passed as the output argument: the name of the case is in it, and differs each time",
    ),
    KnownFailure(
        slug="output-taken-for-a-folder",
        title="A folder stands where the file is due",
        when=(When(words=_UNSAFE, intakes=(IntakeRefusal.NOT_REGULAR,), detail="a folder"),),
        cause="the program takes the output argument for a folder and makes it (os.makedirs)",
        fix="the output argument is the file itself: open it for writing; its folder is there already",
    ),
    KnownFailure(
        slug="answer-is-a-link",
        title="A link stands where the file is due",
        when=(
            When(words=_UNSAFE, intakes=(IntakeRefusal.NOT_REGULAR,), detail="a symbolic link"),
            When(words=_UNSAFE, intakes=(IntakeRefusal.SEVERAL_LINKS,)),
        ),
        cause="the program links to a file in place of writing it; links are never followed",
        fix="copy the file to the output path (shutil.copyfile), or write it there at once",
    ),
    KnownFailure(
        slug="wrote-elsewhere",
        title="The program wrote to another folder",
        when=(
            When(
                words=_MISSING,
                empty=True,
                patterns=(
                    r"\b(?:saved|saving|wrote|written|writing|exported|results|output)\b[^\n/]{0,80}(?:/tmp|/dev/shm)/",
                ),
            ),
        ),
        cause="the program says that it saved to /tmp or /dev/shm, which are gone when it ends",
        fix="write to the path that is passed as the output argument",
    ),
    KnownFailure(
        slug="error-was-swallowed",
        title="An error was caught, and the program ended as if all were well",
        when=(When(words=_MISSING, marks=("traceback (most recent call last)", "exception in thread")),),
        cause="the program, or a worker or thread of it, failed, and the exit code is 0 all the same",
        fix="let errors end the program with a code that is not 0; in shell scripts: set -e",
    ),
)
