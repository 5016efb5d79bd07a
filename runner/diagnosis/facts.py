"""What is known of a run when its verdict has been reached."""

from dataclasses import dataclass
from enum import StrEnum

from runner.formats.contract import Reading
from runner.formats.signs import Sign
from runner.job import Intake, IntakeRefusal, Job, JobResult, KillReason, NameKind, StartRefusal
from runner.streaming.protocol import Breach
from runner.verdict import VerdictWord

_SEARCHED = 256 << 10
"""Bytes at the end of a log that are searched."""


class Gpu(StrEnum):
    """What a job was given of GPUs."""

    NOT_DUE = "not due"
    ABSENT = "absent"
    GIVEN = "given"


class Log(StrEnum):
    """How much was printed."""

    NOTHING = "nothing"
    WHOLE = "whole"
    CUT = "cut"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of a run.

    Attributes:
        word: The verdict's.
        exit_code: None where it never started.
        out_of_memory: Something in it was killed for memory.
        killed: We ended it, because its time was over or it broke the protocol.
        start: Why the engine would not start it.
        intake: Why its file was not taken.
        detail: What stands in the place of the file, in our words.
        full: The output's file system was full.
        others: How many other entries the output folder held.
        names: What kinds of names they have.
        answered: A valid file was taken.
        signs: What can be seen of a file that was refused.
        gpu: What it was given of GPUs.
        length_dependent: Its answers depend on the length of a sequence, not on later frames.
        breach: How it broke the protocol of streamed frames.
        printed: How much it printed.
        text: The end of its log, lower case; untrusted, only searched.
    """

    word: VerdictWord
    exit_code: int | None = None
    out_of_memory: bool = False
    killed: bool = False
    start: StartRefusal | None = None
    intake: IntakeRefusal | None = None
    detail: str = ""
    full: bool = False
    others: int = 0
    names: frozenset[NameKind] = frozenset()
    answered: bool = False
    signs: frozenset[Sign] = frozenset()
    gpu: Gpu = Gpu.NOT_DUE
    length_dependent: bool = False
    breach: Breach | None = None
    printed: Log = Log.WHOLE
    text: str = ""


def facts_of(
    word: VerdictWord,
    job: Job,
    result: JobResult,
    *,
    log: bytes,
    reading: Reading | None = None,
    signs: frozenset[Sign] = frozenset(),
    has_gpu: bool = False,
) -> Facts:
    """The facts of an attempt that has been judged.

    Args:
        word: Its verdict.
        job: What was run.
        result: What came of it.
        log: What it printed, as far as that was kept.
        reading: What was read of its file; None where none was taken.
        signs: What was seen of its file, where that was refused.
        has_gpu: This host gives containers a GPU.
    """
    ended, intake = result.exit, result.intake or Intake(file="")
    return Facts(
        word=word,
        exit_code=ended.code if ended else None,
        out_of_memory=ended is not None and ended.oom_killed,
        killed=result.killed in (KillReason.TIME, KillReason.PROTOCOL),
        start=next((reason for reason in StartRefusal if reason == result.refusal), None),
        intake=intake.refusal,
        detail=intake.detail,
        full=intake.full,
        others=intake.other_entries,
        names=frozenset(intake.other_names),
        answered=reading is not None and reading.prediction is not None,
        signs=signs,
        gpu=(Gpu.GIVEN if has_gpu else Gpu.ABSENT) if job.budget.gpus else Gpu.NOT_DUE,
        breach=Breach(result.stream.breach) if result.stream is not None and result.stream.breach else None,
        printed=Log.CUT if result.log_truncated else Log.WHOLE if log.strip() else Log.NOTHING,
        text=searchable(log),
    )


def searchable(log: bytes) -> str:
    """The end of a log as marks are searched in it."""
    return log[-_SEARCHED:].decode("utf-8", "replace").lower()
