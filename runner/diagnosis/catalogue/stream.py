"""What goes wrong where frames are given one by one."""

from runner.diagnosis.known import KnownFailure, When
from runner.streaming.protocol import Breach
from runner.verdict import VerdictWord

_BROKE = (VerdictWord.BROKE_PROTOCOL,)
_LATE = (VerdictWord.TIMED_OUT,)
_OUT_OF_TURN = (Breach.EARLY, Breach.TWICE, Breach.OUT_OF_ORDER, Breach.OTHER_CASE, Breach.FLOOD)

STREAM = (
    KnownFailure(
        slug="stray-message",
        title="Something that is no message was printed where messages go",
        when=(When(words=_BROKE, breaches=(Breach.NOT_JSON, Breach.UNKNOWN_TYPE, Breach.UNKNOWN_FIELD)),),
        cause="a line that begins with { was printed on standard output and is no message: a dict, a log in JSON, or "
        "messages of two threads in one line",
        fix="print to standard error, or take the client of proctor init --kind stream, which keeps prints off the "
        "messages",
    ),
    KnownFailure(
        slug="answer-out-of-turn",
        title="An answer was for another frame than the one that was asked",
        when=(When(words=_BROKE, breaches=_OUT_OF_TURN),),
        cause="the program numbers frames itself, answers one twice, or collects frames and answers them together",
        fix="answer each frame once, as it comes, with the index of its own message",
    ),
    KnownFailure(
        slug="no-answer",
        title="A frame was not answered in time",
        when=(When(words=_LATE, breaches=(Breach.SILENT,)),),
        cause="the program is too slow, waits for further frames before it answers, or wrote its answer into a buffer "
        "that was never flushed",
        fix="answer each frame before the next is read, load the model before hello, and flush standard output after "
        "every message",
        narrows=("silent-until-killed", "too-slow"),
    ),
    KnownFailure(
        slug="no-hello",
        title="The program did not say hello in time",
        when=(When(words=_LATE, breaches=(Breach.LATE_HELLO,)),),
        cause="the program is one that reads whole folders, loads its model for too long, or wrote its hello into a "
        "buffer that was never flushed",
        fix="begin with the client of proctor init --kind stream, and flush standard output after every message",
        narrows=("silent-until-killed", "too-slow"),
    ),
    KnownFailure(
        slug="other-client",
        title="The program's hello does not fit",
        when=(
            When(
                words=_BROKE,
                breaches=(Breach.NO_HELLO, Breach.SECOND_HELLO, Breach.WRONG_VERSION, Breach.WAY_NOT_OFFERED),
            ),
        ),
        cause="the program says no hello before its first answer, says it twice, or asks for a version of the protocol "
        "or a way of getting frames that is not offered",
        fix="answer the runner's hello once, with protocol 1 and one of the ways it lists under frames",
    ),
    KnownFailure(
        slug="message-too-long",
        title="A message is longer than it may be",
        when=(When(words=_BROKE, breaches=(Breach.TOO_LONG, Breach.TOO_MUCH)),),
        cause="the answer holds more than is asked for, such as features, scores of every pixel or an image that is "
        "not compressed",
        fix="answer with what the format asks for, in one line, and images as base64 of a PNG file",
    ),
    KnownFailure(
        slug="message-malformed",
        title="A message holds what it may not",
        when=(When(words=_BROKE, breaches=(Breach.BAD_FIELD, Breach.NOT_UTF8)),),
        cause="a field of a message is of another type than it must be, or the line is not UTF-8",
        fix="write messages with a JSON library: an index as a whole number, an answer as an object",
    ),
    KnownFailure(
        slug="message-cut-off",
        title="A message has no end",
        when=(When(words=_BROKE, breaches=(Breach.UNFINISHED_LINE,)),),
        cause="the program ended, or closed its output, in the middle of a message",
        fix="end every message with a line end, and flush standard output before the program ends",
    ),
    KnownFailure(
        slug="does-not-read",
        title="The program does not read its standard input",
        when=(When(words=_LATE, breaches=(Breach.NOT_READING,)),),
        cause="the program stopped reading messages, so that the next one could not be passed on",
        fix="read standard input line by line until it ends, in a loop that does nothing else but answer",
        narrows=("silent-until-killed", "too-slow"),
    ),
    KnownFailure(
        slug="error-was-told",
        title="The program said that it failed",
        when=(When(words=(*_BROKE, VerdictWord.CRASHED), breaches=(Breach.ERROR_TOLD,)),),
        cause="predict(), start() or reset() raised an error, which the client told before it ended",
        fix="see the end of the log for the traceback, and run the client on a few frames by hand",
    ),
    KnownFailure(
        slug="left-the-stream",
        title="The program ended, or closed its output, while frames were due",
        when=(When(words=(VerdictWord.CRASHED,), breaches=(Breach.EXITED,), exit_codes=(0,)),),
        cause="the program does not wait for further frames, or takes a slow input for its end",
        fix="read standard input until it ends; a case is over only with the message end",
    ),
)
