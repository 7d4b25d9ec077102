"""As much of JSON Schema 2020-12 as our schemas use, told independently of them."""

import re
from typing import Any

TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "number": (int, float),
}
ANNOTATIONS = {"$schema", "$defs", "title", "description", "default"}


class Validator:
    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root

    def valid(self, value: Any, schema: Any = None) -> bool:
        schema = self.root if schema is None else schema
        if isinstance(schema, bool):
            return schema
        return all(
            word in ANNOTATIONS
            or getattr(self, f"_{word.lstrip('$')}")(value, schema[word], schema)
            for word in schema
        )

    def _ref(self, value: Any, ref: str, _: Any) -> bool:
        return self.valid(value, self.root["$defs"][ref.removeprefix("#/$defs/")])

    def _type(self, value: Any, name: str | list[str], _: Any) -> bool:
        if isinstance(name, list):
            return any(self._type(value, each, _) for each in name)
        whole = name in ("integer", "number") and isinstance(value, bool)
        return isinstance(value, TYPES[name]) and not whole

    def _enum(self, value: Any, allowed: list[Any], _: Any) -> bool:
        return value in allowed

    def _const(self, value: Any, only: Any, _: Any) -> bool:
        return bool(value == only)

    def _required(self, value: Any, names: list[str], _: Any) -> bool:
        return not isinstance(value, dict) or value.keys() >= set(names)

    def _properties(self, value: Any, inner: dict[str, Any], _: Any) -> bool:
        return not isinstance(value, dict) or all(
            self.valid(value[name], inner[name]) for name in value.keys() & inner.keys()
        )

    def _additionalProperties(self, value: Any, rest: Any, schema: Any) -> bool:  # noqa: N802
        if not isinstance(value, dict):
            return True
        others = value.keys() - schema.get("properties", {}).keys()
        if rest is False:
            return not others
        return all(self.valid(value[name], rest) for name in others)

    def _propertyNames(self, value: Any, inner: Any, _: Any) -> bool:  # noqa: N802
        return not isinstance(value, dict) or all(self.valid(name, inner) for name in value)

    def _maxProperties(self, value: Any, most: int, _: Any) -> bool:  # noqa: N802
        return not isinstance(value, dict) or len(value) <= most

    def _minProperties(self, value: Any, least: int, _: Any) -> bool:  # noqa: N802
        return not isinstance(value, dict) or len(value) >= least

    def _not(self, value: Any, inner: Any, _: Any) -> bool:
        return not self.valid(value, inner)

    def _uniqueItems(self, value: Any, wanted: bool, _: Any) -> bool:  # noqa: N802
        return not isinstance(value, list) or all(value.count(each) == 1 for each in value)

    def _exclusiveMinimum(self, value: Any, least: int, _: Any) -> bool:  # noqa: N802
        return not isinstance(value, int | float) or value > least

    def _dependentRequired(self, value: Any, needs: dict[str, list[str]], _: Any) -> bool:  # noqa: N802
        return not isinstance(value, dict) or all(
            value.keys() >= set(others) for name, others in needs.items() if name in value
        )

    def _allOf(self, value: Any, all_: list[Any], _: Any) -> bool:  # noqa: N802
        return all(self.valid(value, each) for each in all_)

    def _anyOf(self, value: Any, any_: list[Any], _: Any) -> bool:  # noqa: N802
        return any(self.valid(value, each) for each in any_)

    def _oneOf(self, value: Any, some: list[Any], _: Any) -> bool:  # noqa: N802
        return sum(self.valid(value, each) for each in some) == 1

    def _if(self, value: Any, condition: Any, schema: Any) -> bool:
        return not self.valid(value, condition) or self.valid(value, schema["then"])

    def _then(self, value: Any, inner: Any, schema: Any) -> bool:
        return True  # as `if` says

    def _pattern(self, value: Any, pattern: str, _: Any) -> bool:
        return not isinstance(value, str) or bool(re.search(pattern, value))

    def _maxLength(self, value: Any, most: int, _: Any) -> bool:  # noqa: N802
        return not isinstance(value, str) or len(value) <= most

    def _minimum(self, value: Any, least: int, _: Any) -> bool:
        return not isinstance(value, int) or value >= least

    def _maximum(self, value: Any, most: int, _: Any) -> bool:
        return not isinstance(value, int) or value <= most

    def _items(self, value: Any, inner: Any, _: Any) -> bool:
        return not isinstance(value, list) or all(self.valid(each, inner) for each in value)

    def _minItems(self, value: Any, least: int, _: Any) -> bool:  # noqa: N802
        return not isinstance(value, list) or len(value) >= least

    def _maxItems(self, value: Any, most: int, _: Any) -> bool:  # noqa: N802
        return not isinstance(value, list) or len(value) <= most
