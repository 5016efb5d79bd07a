"""Looks into images before anything of them is run, each once, and keeps what was found."""

from dataclasses import dataclass

from runner.challenge import Challenge
from runner.execute import Bench
from runner.gpu.discovery import Gpu
from runner.images import PinnedImage
from runner.pipeline.context import Context
from runner.pipeline.events import Notice, Step
from runner.pipeline.host import HostFacts
from runner.preflight import Host, HostGpu, PreflightFinding, Severity, look, preflight
from runner.settings import Settings
from runner.store import read_value, write_value
from runner.verdict import Hint, Verdict, VerdictWord


@dataclass(frozen=True, kw_only=True)
class PreflightRecord:
    """What was found in a submission's image; the file ``preflight.json``.

    Attributes:
        image: Its ID.
        findings: The worst first.
    """

    image: str
    findings: tuple[PreflightFinding, ...]


def look_into(
    bench: Bench, host: HostFacts, image: PinnedImage, challenge: Challenge, settings: Settings
) -> tuple[PreflightFinding, ...]:
    """What can be told of an image before it runs; it is not started.

    Args:
        bench: What this host gives a job.
        host: Facts of the host.
        image: What is looked into.
        challenge: What is asked of it.
        settings: This host's.

    Raises:
        EngineUnreachable: No answer from the engine.
    """
    gpu = _driver(bench.gpus.gpus[0]) if bench.gpus is not None and bench.gpus.gpus else None
    contents = look(bench.engine, image.facts, challenge, labels=bench.labels, cuda=gpu is not None)
    here = Host(architecture=host.engine.architecture, gpu=gpu, largest_image=settings.ceiling.image_size)
    return preflight(image.facts, challenge, contents, host=here)


def _driver(gpu: Gpu) -> HostGpu | None:
    major, _, minor = gpu.cuda.partition(".")
    return HostGpu(driver=gpu.driver, cuda=(int(major), int(minor))) if minor else None


def findings_of(context: Context, slug: str, name: str, image: PinnedImage) -> tuple[PreflightFinding, ...]:
    """What was found in a submission's image, looked for where it is not on disk; warnings are told.

    Args:
        context: The run.
        slug: The submission's.
        name: What it is called, for people.
        image: Its image.
    """
    path = context.run.preflight(slug)
    record = read_value(path, PreflightRecord) if path.is_file() else None
    if record is None or record.image != image.id:
        context.observe(Step(text=f"looking into the image of {name}"))
        found = look_into(context.bench, context.host, image, context.challenge, context.settings)
        record = PreflightRecord(image=image.id, findings=found)
        write_value(path, record)
    for finding in record.findings:
        if finding.severity is Severity.WARNS:
            context.observe(Notice(text=f"{name}: {finding.full}"))
    return record.findings


def refusal_of(findings: tuple[PreflightFinding, ...], *, public: bool) -> Verdict | None:
    """The verdict on an image that the preflight refuses; None where it does not.

    Args:
        findings: What was found.
        public: The image's own words may be quoted.
    """
    refusing = [finding for finding in findings if finding.severity is Severity.REFUSES]
    if not refusing:
        return None
    told = [finding.full if public else finding.sentence for finding in refusing]
    return Verdict(
        word=VerdictWord.BAD_IMAGE,
        sentence="; ".join(dict.fromkeys(told)),
        hints=tuple(
            Hint(cause=text, fix=finding.remedy, slug=finding.hint)
            for text, finding in zip(told, refusing, strict=True)
        ),
    )
