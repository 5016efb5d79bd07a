"""Makes an environment of its own for a package we compare with, where its versions do not fit ours.

``python tools/peers.py FOLDER`` makes the one of ivtmetrics. It is made once and kept; PyPI is asked through pip.
"""

import argparse
import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

IVTMETRICS = ("ivtmetrics==0.1.5", "scikit-learn<1.6")
"""With scikit-learn 1.6 and newer, ivtmetrics counts absent classes as 0, which is wrong."""
INSTALL_SECONDS = 600.0


class PeerMissing(Exception):
    """The environment could not be made; the message says what to do."""


def peer_python(folder: Path, requirements: tuple[str, ...]) -> Path:
    """The Python of an environment with these packages, made where it is missing or not whole.

    Args:
        folder: Where the environment is or shall be.
        requirements: What pip installs.

    Raises:
        PeerMissing: It cannot be made, as a rule since PyPI cannot be reached.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    python, ready = folder / "bin" / "python", folder / "ready"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if python.exists() and ready.exists() and ready.read_text() == "\n".join(requirements):
            return python
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)], "install Python's venv module (Debian: python3-venv)")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
        _run(pip, "let pip reach PyPI, or point it to a mirror with PIP_INDEX_URL, and run this again")
        ready.write_text("\n".join(requirements))
    return python


def _run(command: list[str], remedy: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise PeerMissing(f"{' '.join(command)} took more than {INSTALL_SECONDS:.0f} s; next: {remedy}") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
        raise PeerMissing(f"{' '.join(command)} failed: {last[0]}; next: {remedy}")


def main() -> None:
    """Make the environment and print its Python."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    try:
        print(peer_python(parser.parse_args().folder, IVTMETRICS))
    except PeerMissing as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
