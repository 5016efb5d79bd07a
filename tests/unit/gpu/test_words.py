"""What a report says of a job's use of devices."""

from pydantic import TypeAdapter

from runner.budget import GpuUsage, Usage
from runner.gpu.words import used_in_words
from runner.job import JobResult

GIB = 1 << 30
FULL = GpuUsage(
    device="GPU-1", name="V100", peak_memory=3 * GIB, peak_utilisation=97, mean_utilisation=55.4, joules=1234.4,
    counted=True, samples=12, every=0.2,
)  # fmt: skip


def usage(*gpus: GpuUsage, joules: float | None = None) -> Usage:
    return Usage(
        engine_seconds=1, monotonic_seconds=1, output_bytes=1, alone=True, gpus=gpus, processor_joules=joules
    )  # fmt: skip


def test_everything_that_was_sampled() -> None:
    device = (
        "V100: memory in use at least 3 GiB; utilisation at least 97 % at its peak, 55 % on average; 1234 J by its own "
        "counter; sampled every 200 ms, 12 times."
    )
    assert used_in_words(usage(FULL, joules=88.6)) == (
        device,
        "Energy of the host's processors, whoever used them: 89 J.",
    )


def test_only_what_a_device_tells() -> None:
    slice_ = GpuUsage(device="MIG-1", name="A100 MIG 1g.5gb", peak_memory=0, samples=2, every=0.2)
    power = GpuUsage(device="GPU-1", name="T4", peak_memory=7, joules=9.6, samples=3, every=1.0)
    none = GpuUsage(device="GPU-1", name="T4", every=0.2)
    assert used_in_words(usage(slice_, power, none)) == (
        "A100 MIG 1g.5gb: memory in use at least 0 B; sampled every 200 ms, 2 times.",
        "T4: memory in use at least 7 B; about 10 J by its power; sampled every 1000 ms, 3 times.",
        "T4: no sample came.",
    )


def test_nothing_where_nothing_is_known() -> None:
    assert used_in_words(usage()) == ()


def test_a_result_stored_before_there_was_sampling_still_loads_and_a_new_one_comes_back() -> None:
    adapter = TypeAdapter(JobResult)
    old = """{"job": "full", "digest": "d", "attempt": 1, "exit": {"code": 0, "oom_killed": false, "seconds": 2.0},
      "killed": null, "usage": {"engine_seconds": 2.0, "monotonic_seconds": 2.1, "output_bytes": 9, "alone": true},
      "intake": null}"""
    loaded = adapter.validate_json(old)
    assert (loaded.usage.gpus, loaded.usage.processor_joules) == ((), None)
    new = JobResult(
        job="full", digest="d", attempt=1, exit=None, killed=None, usage=usage(FULL, joules=1.5), intake=None
    )  # fmt: skip
    assert adapter.validate_json(adapter.dump_json(new)) == new
