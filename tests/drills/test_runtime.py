"""Another runtime, a kernel of its own between container and host, on a private engine that offers it."""

import shutil
import threading
from pathlib import Path

import pytest

from runner.engine.helper import HELPER_REFERENCE
from runner.pipeline.host import open_bench
from runner.probe import ask
from runner.settings import load_settings
from tests.drills.daemon import copy_helper, private_daemon

_WRAPPER = """#!/bin/sh
exec {runsc} --platform=ptrace --network=none "$@"
"""
_SCRIPT = """
import json, os, sys
try:
    open(sys.argv[1] + "/x", "w")
    wrote = True
except OSError:
    wrote = False
seen = open(sys.argv[1] + "/marker.txt").read()
json.dump({"kernel": os.uname().release, "uid": os.getuid(), "wrote": wrote, "seen": seen,
           "tmp": (lambda s: s.f_blocks * s.f_bsize)(os.statvfs("/tmp"))}, open(sys.argv[2] + ".json", "w"))
"""


def test_a_container_runs_under_gvisor_and_not_on_the_hosts_kernel(tmp_path: Path) -> None:
    runsc = shutil.which("runsc")
    if runsc is None:
        pytest.fail("runsc is not installed; next: make runsc")
    wrapper = tmp_path / "runsc"
    wrapper.write_text(_WRAPPER.format(runsc=runsc))
    wrapper.chmod(0o755)
    with private_daemon("--add-runtime", f"runsc={wrapper}") as daemon:
        engine = daemon.engine()
        copy_helper(engine)
        flags = {"runtime": "runsc", "workspace": str(daemon.folder / "work")}
        settings = load_settings(None, flags, environ={}).settings
        with open_bench(engine, settings, stop=threading.Event(), observe=lambda _event: None) as (bench, host):
            found = ask(bench, engine.image(HELPER_REFERENCE), _SCRIPT, scratch=tmp_path, marker="m")
        assert host.runtime == "runsc"
        assert found.result.exit is not None
        assert found.result.exit.code == 0, found
        assert isinstance(found.answer, dict)
        assert found.answer["kernel"] == "4.4.0"  # what gVisor says of itself
        assert found.answer["kernel"] != host.engine.kernel
        assert {key: found.answer[key] for key in ("wrote", "seen", "tmp")} == {
            "wrote": False, "seen": "m", "tmp": 16 << 20,
        }  # fmt: skip
        assert isinstance(found.answer["uid"], int)
        assert found.answer["uid"] >= 200_000
        engine.close()
