"""NVIDIA's container toolkit without NVIDIA: programs for a private engine's PATH that record and play what it does.

``nvidia-container-runtime-hook`` is what an engine runs for a device request, and what the runtime adds to every
container. It reads the container's environment as the real one does, writes down what it read, and makes the device
nodes ``/dev/nvidiaN`` of the devices named there. ``nvidia-container-runtime`` is the OCI runtime around runc.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

HOOK = "nvidia-container-runtime-hook"
RUNTIME = "nvidia-container-runtime"

_HOOK = """#!{python}
import json, os, subprocess, sys
folder = {folder!r}
state = json.load(sys.stdin)
with open(os.path.join(state["bundle"], "config.json")) as source:
    config = json.load(source)
environment = dict(line.partition("=")[::2] for line in config["process"]["env"])
minors = json.load(open(os.path.join(folder, "cards.json")))
gives = open(os.path.join(folder, "gives")).read()
swarm = [name for name in environment if name.startswith("DOCKER_RESOURCE_")]
asked = ",".join(environment.get(name, "") for name in swarm or ["NVIDIA_VISIBLE_DEVICES"])
names = [name for name in asked.split(",") if name]
if "void" in names:
    names = []
if "all" in names or (names and gives == "all"):
    names = sorted(minors)
if gives == "none":
    names = []
dev = os.path.join(config["root"]["path"], "dev")
for name in names:
    node = os.path.join(dev, "nvidia%d" % minors[name])
    inside = ["nsenter", "--target", str(state["pid"]), "--mount"]
    subprocess.run([*inside, "mknod", "-m", "666", node, "c", "195", str(minors[name])], check=True)
record = {{"id": state["id"], "devices": names, "environment": environment}}
part = os.path.join(folder, "records", state["id"] + ".part")
with open(part, "w") as sink:
    json.dump(record, sink)
os.rename(part, part.removesuffix("part") + "json")
"""

_RUNTIME = """#!{python}
import json, os, sys
folder = {folder!r}
if "create" in sys.argv:
    bundle = sys.argv[sys.argv.index("--bundle") + 1]
    path = os.path.join(bundle, "config.json")
    with open(path) as source:
        config = json.load(source)
    hooks = config.setdefault("hooks", {{}}).setdefault("prestart", [])
    hooks.append({{"path": os.path.join(folder, "bin", {hook!r}), "args": [{hook!r}, "prestart"]}})
    with open(path, "w") as sink:
        json.dump(config, sink)
os.execvp("runc", ["runc", *sys.argv[1:]])
"""


@dataclass(frozen=True)
class Given:
    """What the toolkit read of one container and gave it."""

    devices: tuple[str, ...]
    environment: dict[str, str]


@dataclass(frozen=True)
class Toolkit:
    """The stand-in in a folder."""

    folder: Path

    @property
    def tools(self) -> Path:
        """For the engine's PATH."""
        return self.folder / "bin"

    @property
    def runtime(self) -> Path:
        """For ``--add-runtime``."""
        return self.tools / RUNTIME

    def install(self, minors: dict[str, int]) -> None:
        """Write its programs; ``minors`` are the devices there are, by UUID."""
        for part in (self.tools, self.folder / "records"):
            part.mkdir(parents=True)
        (self.folder / "cards.json").write_text(json.dumps(minors))
        self.give("asked")
        for name, source in ((HOOK, _HOOK), (RUNTIME, _RUNTIME)):
            (self.tools / name).write_text(source.format(python=sys.executable, folder=str(self.folder), hook=HOOK))
            (self.tools / name).chmod(0o755)

    def give(self, what: str) -> None:
        """From now on: the devices ``asked`` for, ``all`` to whoever asks for one, or ``none``."""
        (self.folder / "gives").write_text(what)

    def forget(self) -> None:
        """Forget what was read so far."""
        for record in (self.folder / "records").iterdir():
            record.unlink()

    def given(self) -> dict[str, Given]:
        """By container ID, since it last forgot."""
        found = {}
        for path in (self.folder / "records").glob("*.json"):
            record = json.loads(path.read_text())
            found[record["id"]] = Given(tuple(record["devices"]), record["environment"])
        return found
