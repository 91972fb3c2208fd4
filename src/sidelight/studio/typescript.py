"""Write the page's types from the models: `python -m sidelight.studio.typescript studio/src/messages.ts`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from sidelight.foundation.files import write_text
from sidelight.studio.messages import Everything

_HEAD = """\
// Made from src/sidelight/studio/messages by `python -m sidelight.studio.typescript`; do not edit.
// An infinite figure is the string "infinity".
"""
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript() -> str:
    """Return the TypeScript declarations of everything that is said."""
    schema = Everything.model_json_schema(mode="serialization")
    parts = schema["$defs"] | {"Everything": {key: schema[key] for key in ("properties", "description")}}
    unions = {
        "Change": "SetBudget",
        "StudioEvent": "FiguresEvent",
        "WorkOrder": "Calibrate",
        "WorkResult": "Calibrated",
    }
    named = [_union(name, parts, first) for name, first in unions.items()]
    return "\n".join([_HEAD, *(_interface(name, part) for name, part in sorted(parts.items())), *named])


def _union(name: str, parts: Mapping[str, Any], first: str) -> str:
    """Return the name of a union: the alternatives of the field that has this one among them."""
    for part in parts.values():
        for field in part.get("properties", {}).values():
            choice = field.get("items", field)
            if {"$ref": f"#/$defs/{first}"} in choice.get("oneOf", ()):
                return f"export type {name} =\n  | " + "\n  | ".join(map(_type, choice["oneOf"])) + ";\n"
    raise LookupError(f"no message holds {first}.")


def _interface(name: str, part: Mapping[str, Any]) -> str:
    """Return the declaration of one model, with its words as comments."""
    required = set(part.get("required", part["properties"]))
    lines = [_comment(part.get("description", ""), ""), f"export interface {name} {{"]
    for key, field in part["properties"].items():
        lines.append(_comment(field.get("description", ""), "  "))
        is_constant = "const" in field
        lines.append(f"  {key}{'' if key in required or is_constant else '?'}: {_type(field)};")
    return "\n".join([*(line for line in lines if line), "}", ""])


def _comment(text: str, indent: str) -> str:
    return f"{indent}/** {' '.join(text.split())} */" if text else ""


def _type(field: Mapping[str, Any]) -> str:
    """Return the type of a field."""
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[-1]
    if "const" in field:
        return f'"{field["const"]}"' if isinstance(field["const"], str) else str(field["const"])
    if "enum" in field:
        return " | ".join(f'"{value}"' for value in field["enum"])
    if parts := field.get("anyOf") or field.get("oneOf"):
        return " | ".join(dict.fromkeys(map(_type, parts)))
    if field["type"] == "array":
        if "prefixItems" in field:
            return f"[{', '.join(map(_type, field['prefixItems']))}]"
        inner = _type(field["items"])
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if field["type"] == "object":
        return f"Record<string, {_type(field['additionalProperties'])}>"
    return _PLAIN[field["type"]]


if __name__ == "__main__":
    write_text(sys.argv[1], typescript())
