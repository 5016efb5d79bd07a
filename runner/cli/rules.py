"""A challenge's rules in words."""

from runner.challenge import (
    AnswerFormat,
    AnswersCompared,
    ArraysFormat,
    CausalityMethod,
    Challenge,
    FormatSection,
    FrameScoresFormat,
    FrameTableFormat,
    Invocation,
    InvocationMode,
    LabelImagesFormat,
    Limits,
    Pacing,
    Stream,
    Task,
)
from runner.challenge.limits import RunTimePerMedia
from runner.policy import loosened, policy_named
from runner.quantities import show_bytes, show_seconds


def run_time_words(limits: Limits) -> str:
    """The run-time budget in words."""
    rule = limits.run_time
    if isinstance(rule, RunTimePerMedia):
        rate = rule.per_media
        extra = f" and {show_seconds(rule.allowance)} on top" if rule.allowance else ""
        return f"{show_seconds(rate.run_seconds)} for every {show_seconds(rate.media_seconds)} of media{extra}"
    return show_seconds(rule.fixed)


def rules(challenge: Challenge) -> list[tuple[str, str]]:
    """What a container gets and must do, by name."""
    limits, invocation = challenge.limits, challenge.invocation
    lines = [
        ("platform", challenge.platform.value),
        ("started as", _started(challenge.invocation)),
        *((("streamed", _streamed(invocation, invocation.stream)),) if invocation.stream is not None else ()),
        ("input", f"{invocation.input_mount}, read-only{_places(challenge)}"),
        ("output", f"{invocation.output_mount}, at most {show_bytes(limits.output)}, {limits.output_files} files"),
        ("run time", run_time_words(limits)),
        ("memory", f"{show_bytes(limits.memory)}, of it {show_bytes(limits.shm)} /dev/shm"),
        ("processors", f"{limits.cpus:g}"),
        ("GPUs", f"{limits.gpus}" + (f" ({challenge.reference_hardware})" if challenge.reference_hardware else "")),
        ("network", "none"),
        ("policy", "; ".join([challenge.policy.value, *loosened(policy_named(challenge.policy))])),
        ("may write to", f"{invocation.output_mount}, /tmp ({show_bytes(limits.tmp)}, also HOME), /dev/shm"),
        ("causality", _causality(challenge)),
    ]
    for name, task in challenge.tasks.items():
        writes = f"writes {task.format.file.replace('{task}', name)}{_contents(task.format)}"
        lines.append((f"task {name}", f"{_shown(challenge, task)}{writes}; ranked by {task.primary.metric}"))
    return lines


def _shown(challenge: Challenge, task: Task) -> str:
    """What a task is shown, where tasks differ in that."""
    given = [*task.inputs, *(f"the prediction of task {earlier}" for earlier in task.inputs_from)]
    return f"is shown {', '.join(given)}; " if given and len(challenge.tasks) > 1 else ""


def _contents(rule: FormatSection) -> str:
    match rule:
        case FrameTableFormat():
            return f" with {', '.join([rule.index.column, *rule.columns])}"
        case FrameScoresFormat():
            return f", {rule.classes} scores for each frame"
        case LabelImagesFormat():
            coded = "a colour" if rule.coding == "colour" else "a number"
            return f", {rule.width} × {rule.height} pixels, each {coded} of {len(rule.classes)} classes"
        case ArraysFormat():
            return f" with {', '.join(rule.arrays)}"
        case AnswerFormat():
            return f" with {', '.join(rule.fields)}"
        case _:
            return f", a {rule.kind}"


def _places(challenge: Challenge) -> str:
    """What lies where in the input, where that is more than a folder of frames for each case."""
    places = [*(rule.inside for rule in challenge.cases.rules.values()), *challenge.invocation.lists]
    return f": {', '.join(places)}" if places != ["{case}"] else ""


def _started(invocation: Invocation) -> str:
    words = " ".join([*(invocation.command or ("ENTRYPOINT",)), *invocation.args])
    return f"{words}, once for all cases" if invocation.mode is InvocationMode.DATASET else words


def _streamed(invocation: Invocation, stream: Stream) -> str:
    who = "every container is" if invocation.mode is InvocationMode.STREAM else "with profile stream a container is"
    pace = "once the one before is answered" if stream.pacing is Pacing.LOCKSTEP else "at the camera's rate"
    return (
        f"{who} given its frames one by one, each {pace}; {show_seconds(stream.answer)} for an answer, "
        f"{show_seconds(stream.start_up)} to start"
    )


def _causality(challenge: Challenge) -> str:
    rule = challenge.causality
    if challenge.invocation.mode is InvocationMode.STREAM:
        return "holds by construction: frames come one by one"
    if rule.method == "off":
        return "not checked"
    cases = "1 case" if rule.on == 1 else f"{rule.on} cases"
    clip = f" of the first {rule.clip} frames" if rule.clip is not None else ""
    last = ", by its last answer" if rule.rule is AnswersCompared.LAST else ""
    how = {
        CausalityMethod.EXHAUSTIVE: f"every prefix{clip}{last}",
        CausalityMethod.CUT_RUN: f"one cut{clip} each",
        CausalityMethod.ALTERED_FUTURE: f"at most {rule.cuts} altered futures{clip}",
    }.get(rule.method, f"at most {rule.cuts} cuts{clip}")
    return f"checked on {cases} with {how}; a leak: {rule.on_leak.value}"
