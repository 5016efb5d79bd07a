"""What every section of challenge.yaml has in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of challenge.yaml: frozen, and an unknown key is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True, allow_inf_nan=False)
