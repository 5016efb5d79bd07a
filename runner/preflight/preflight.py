"""Everything that can be told of an image before it is run, from what it says of itself and what was read out of it."""

from runner.challenge import Challenge
from runner.engine import ImageFacts
from runner.policy import policy_named
from runner.preflight import configuration
from runner.preflight.configuration import Host
from runner.preflight.contents import Contents
from runner.preflight.cuda import of_cuda
from runner.preflight.environment import of_environment
from runner.preflight.findings import PreflightFinding, Severity
from runner.preflight.programs import of_programs


def preflight(
    image: ImageFacts, challenge: Challenge, contents: Contents | None = None, *, host: Host | None = None
) -> tuple[PreflightFinding, ...]:
    """Compare an image with what the challenge asks; whatever this machine is. Pure.

    Args:
        image: What it says of itself.
        challenge: What is asked.
        contents: What ``look`` read out of it; None: nothing.
        host: What counts of this host: for warnings, and the largest image it takes; None: nothing.

    Returns:
        The findings, those that refuse first, then those that warn.
    """
    contents, host = contents or Contents(), host or Host()
    policy = policy_named(challenge.policy)
    foreign = not policy.image_user
    findings = [
        *configuration.of_platform(image, challenge, host),
        *configuration.of_size(image, host),
        *configuration.of_start(image, challenge),
        *of_programs(image, challenge, contents, foreign=foreign),
        *configuration.of_working_dir(image, contents, foreign=foreign),
        *configuration.of_volumes(image, challenge),
        *configuration.of_mounts(challenge, contents),
        *of_cuda(image, challenge, contents, host.gpu),
        *of_environment(image, challenge, contents, policy),
        *configuration.of_health_check(image),
        *configuration.of_user(image, foreign=foreign),
        *configuration.of_unread(contents),
    ]
    return tuple(sorted(findings, key=lambda finding: list(Severity).index(finding.severity)))
