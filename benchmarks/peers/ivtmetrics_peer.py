"""Runs in ivtmetrics' own environment: ``python ivtmetrics_peer.py in.npz out.json``.

Arrays are named ``case/video/positive`` and ``case/video/score``, each (frames, 100). For each case the answer holds
AP by level over videos and over pooled frames, top-K recall, and what the levels took: seconds of the processor, and
megabytes.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from ivtmetrics.recognition import Recognition

LEVELS = ("i", "v", "t", "iv", "it", "ivt")
COLUMNS = {"i": 1, "v": 2, "t": 3, "iv": 4, "it": 5, "ivt": 0}


def peak() -> float:
    """The most memory this process had, in megabytes; ``ru_maxrss`` would hold what the parent had at the fork."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    """Score every case."""
    arrays = np.load(sys.argv[1])
    cases: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    for name in arrays.files:
        case, video, what = name.split("/")
        cases.setdefault(case, {}).setdefault(video, {})[what] = arrays[name]
    bank = Recognition(num_class=100).bank
    answer: dict[str, object] = {"levels": {level: bank[:, COLUMNS[level]].tolist() for level in LEVELS}, "cases": {}}
    for case, videos in cases.items():
        before = peak()
        judge = Recognition(num_class=100)
        for video in videos.values():
            judge.update(video["positive"].astype(int), video["score"])
            judge.video_end()
        found, seconds = {}, {}
        for level in LEVELS:
            began = time.process_time()
            found[level] = judge.compute_video_AP(level)
            seconds[level] = time.process_time() - began
        seconds["all"] = sum(seconds.values())
        answer["cases"][case] = {  # type: ignore[index]
            "seconds": seconds,
            "megabytes": peak() - before,
            "by_class": {level: result["AP"].tolist() for level, result in found.items()},
            "mean": {level: float(result["mAP"]) for level, result in found.items()},
        }
        if "--levels-only" not in sys.argv:
            answer["cases"][case]["pooled"] = judge.compute_global_AP("ivt")["AP"].tolist()  # type: ignore[index]
            answer["cases"][case]["top_k"] = {k: judge.topK(k) for k in (5, 10, 15, 20)}  # type: ignore[index]
    Path(sys.argv[2]).write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
