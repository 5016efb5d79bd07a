"""A challenge's rules in words."""

from runner.challenge import Challenge, Limits
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
        ("started as", " ".join(["ENTRYPOINT", *invocation.args])),
        ("input", f"{invocation.input_mount}, read-only"),
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
        columns = ", ".join([task.format.index.column, *task.format.columns])
        lines.append((f"task {name}", f"writes {task.format.file} with {columns}; ranked by {task.primary.metric}"))
    return lines


def _causality(challenge: Challenge) -> str:
    rule = challenge.causality
    if rule.method == "off":
        return "not checked"
    cases = "1 case" if rule.on == 1 else f"{rule.on} cases"
    return f"checked on {cases} with at most {rule.cuts} cuts; a leak: {rule.on_leak.value}"
