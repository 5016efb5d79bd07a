"""The JSON schema of challenge.yaml, for editors.

The models read more than their types say: sizes and durations with units, ranges of labels, a format by its kind. What
may be written there is said here, beside the functions that read it.
"""

from collections.abc import Callable
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from runner.challenge import Challenge
from runner.challenge.formats.labels import spread
from runner.challenge.formats.registry import BUILT_IN
from runner.quantities import parse_bytes, parse_seconds

_NUMBER = r"^\s*[0-9]+(\.[0-9]+)?\s*"
_BYTES = _NUMBER + r"(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)\s*$"
_SECONDS = _NUMBER + r"(ms|s|min|h|d)\s*$"
_LABELS = r"^\s*[+-]?[0-9]+\s*\.\.\s*[+-]?[0-9]+\s*$"
_SECTION = "FormatSection"


class _Schema(GenerateJsonSchema):
    """Says what may be written where a value is read from text."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        inner: JsonSchemaValue = self.generate_inner(schema["schema"])
        function: Callable[..., Any] = schema["function"]["function"]
        if function is parse_bytes:
            return {"anyOf": [inner, {"type": "string", "pattern": _BYTES}]}
        if function is parse_seconds:
            return {"anyOf": [inner, {"type": "string", "pattern": _SECONDS}]}
        if function is spread:
            span = {"type": "string", "pattern": _LABELS}
            return {"anyOf": [{"type": "array", "items": {"anyOf": [{"type": "integer"}, span]}}, span]}
        return inner

    def function_plain_schema(
        self,
        schema: core_schema.PlainValidatorFunctionSchema,  # noqa: ARG002  there is one such value
    ) -> JsonSchemaValue:
        """A rate, such as ``60 s / 10 min``: the one value that is only text."""
        return {"type": "string", "pattern": r"^[^/]+/[^/]+$", "examples": ["60 s / 10 min"]}


def challenge_schema() -> dict[str, Any]:
    """The schema, with every built-in format where a format stands; one of an installed package is not in it."""
    schema = Challenge.model_json_schema(schema_generator=_Schema)
    definitions = schema["$defs"]
    kinds = []
    for rule in BUILT_IN.values():
        found = rule.model_json_schema(schema_generator=_Schema)
        definitions |= found.pop("$defs", {})
        definitions[rule.__name__] = found
        kinds.append({"$ref": f"#/$defs/{rule.__name__}"})
    definitions[_SECTION] = {"anyOf": kinds, "title": "What a container must write"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
