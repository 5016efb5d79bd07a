"""What every prediction format of challenge.yaml says."""

import re
from typing import Literal

from pydantic import field_validator

from runner.challenge.section import Section

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class FormatSection(Section):
    """What a container must write for a case; each kind adds its own keys.

    Attributes:
        kind: Which format this is; a built-in one, or one of the entry points ``proctor.formats``.
        file: Path below the output folder, with ``{case}``, and ``{task}`` where each task has its own. A format with
            a file a frame names ``{frame}`` as well, which is the name of the frame's own file without its extension.
        extra_files: ``ignore`` what else stands in the output folder, or ``refuse`` every prediction that lies there.
            Due are the files of all tasks and cases that share the container.
    """

    kind: str
    file: str
    extra_files: Literal["ignore", "refuse"] = "ignore"

    @field_validator("file")
    @classmethod
    def _inside(cls, path: str) -> str:
        parts = path.split("/")
        if path.count("{case}") != 1 or any(part in ("", "..") or part.startswith(".") for part in parts):
            raise ValueError(f"{path!r} must be a path below the output folder that holds {{case}} once")
        for name in _PLACEHOLDER.findall(path):
            if name not in cls.placeholders():
                raise ValueError(f"{{{name}}} in {path!r} is not a placeholder; known: {', '.join(cls.placeholders())}")
        if len(parts) > 3:
            raise ValueError(f"{path!r} is more than two folders deep")
        return path

    @classmethod
    def placeholders(cls) -> tuple[str, ...]:
        """What may stand in braces in ``file``."""
        return ("case", "task")
