"""No schema takes long to check a value, for any schema and any value."""

import time
from contextlib import suppress

import pytest

from horae.errors import BadInput, Costly
from horae.model.documents.schema import Validator, check_schema
from horae.model.documents.schema_cost import MOST_UNITS, places_of, units_of

MOST_SECONDS = 3.0  # for this thread: thirty times the slowest check, which leaves time for a garbage collection
OBJECT = {"type": "object"}


def ref(name):
    return {"$ref": f"#/$defs/{name}"}


def chain(levels, wide, keyword="allOf"):
    """Return definitions that each refer to the next several times."""
    defs = {f"d{i}": {keyword: [ref(f"d{i + 1}")] * wide} for i in range(levels)}
    return {"$defs": {**defs, f"d{levels}": OBJECT}, **ref("d0")}


def doubling(below):
    """Return a definition that applies to itself twice, one level further down."""
    twice = {"allOf": [ref("n"), ref("n")]}
    return {"$defs": {"n": {**below(twice)}}, **ref("n")}


def deep(levels, key="c"):
    value = {}
    for _ in range(levels):
        value = {key: value}
    return value


def deep_list(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return {"c": value}


def unevaluated(levels, keyword):
    """Return alternatives whose every level is evaluated twice: on its own, and for the unevaluated rest."""
    schema = OBJECT
    for _ in range(levels):
        schema = {keyword: {"type": "integer"}, "anyOf": [schema]}
    return schema


SLOW = "[ab]*a[ab]{60}c"  # an automaton takes microseconds for each character
TEXT = "abbab" * 2000
REFUSED = {
    "references that multiply": chain(9, 10),
    "anyOf that multiplies": chain(9, 10, "anyOf"),
    "oneOf that multiplies": chain(9, 10, "oneOf"),
    "a long chain that doubles": chain(40, 2),
    "a long chain": chain(3000, 1),
    "dependent schemas that multiply": {
        "$defs": {f"d{i}": {"dependentSchemas": {str(k): ref(f"d{i + 1}") for k in range(10)}} for i in range(9)}
        | {"d9": OBJECT},
        **ref("d0"),
    },
    "not, if, then and else that multiply": {
        "$defs": {
            f"d{i}": {word: ref(f"d{i + 1}") for word in ("if", "then", "else", "not")} for i in range(20)
        } | {"d20": OBJECT},
        **ref("d0"),
    },
    "itself": {"$ref": "#"},
    "itself in allOf": {"allOf": [{"$ref": "#"}]},
    "two in a circle": {"$defs": {"a": ref("b"), "b": ref("a")}, **ref("a")},
    "a circle by anchor": {"$anchor": "here", "anyOf": [{"$ref": "#here"}]},
    "members that double": doubling(lambda twice: {"properties": {"c": twice}}),
    "other members that double": doubling(lambda twice: {"additionalProperties": twice}),
    "members by pattern that double": doubling(lambda twice: {"patternProperties": {"c": twice}}),
    "elements that double": doubling(lambda twice: {"items": twice, "properties": {"c": ref("n")}}),
    "first elements that double": doubling(lambda twice: {"prefixItems": [twice], "properties": {"c": ref("n")}}),
    "what is not evaluated doubles": doubling(lambda twice: {"unevaluatedProperties": twice}),
    "members that double by two keywords": {
        "$defs": {"n": {"properties": {"c": ref("n")}, "patternProperties": {"^c": ref("n")}}}, **ref("n"),
    },
    "dynamic references that double": {
        "$dynamicAnchor": "n", "properties": {"c": {"allOf": [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}]}},
    },
    "references under an id": {
        "$defs": {
            "e": {"$id": "urn:e", "$defs": {"n": {"properties": {"c": {"allOf": [ref("n"), ref("n")]}}}}, **ref("n")}
        },
        **ref("e"),
    },
    "many members that stand for much each": {
        **{key: value for key, value in chain(3, 12).items() if key == "$defs"},
        "properties": {f"p{i}": {"title": str(i), **ref("d0")} for i in range(500)},
    },
    "many parts that each stand for many members": {
        "$defs": {"d": {"properties": {f"p{i}": {} for i in range(5000)}}}, "allOf": [ref("d")] * 2400,
    },
    "very many patterns that allow anything": {"patternProperties": {f"^x{i}.*y$": True for i in range(1000)}},
    "what is unevaluated in what is unevaluated": unevaluated(14, "unevaluatedProperties"),
    "elements that are unevaluated within each other": {"properties": {"c": unevaluated(14, "unevaluatedItems")}},
    "very many patterns": {"patternProperties": {f"^x{i}.*y$": OBJECT for i in range(1000)}},
    "an enormous pattern": {"properties": {"c": {"pattern": "(a{1,100}){1,100}"}}},
}  # fmt: skip
LARGE = {  # schemas that are fine, and values that are too large for them
    "alternatives for each element": (
        {"properties": {"c": {"items": {"anyOf": [{"const": i} for i in range(1000)]}}}},
        {"c": [999] * 20_000},
    ),
    "enums for each element": (
        {"properties": {"c": {"items": {"enum": [{"a": i} for i in range(2000)]}}}},
        {"c": [{"a": 1999}] * 20_000},
    ),
    "patterns for each member": (
        {"patternProperties": {f"^x{i}.*y$": {"pattern": "(x+x+)+y"} for i in range(100)}},
        {f"x{i}y": "x" * 50 for i in range(20_000)},
    ),
    "look-ahead in each element": (
        {"properties": {"c": {"items": {"allOf": [{"pattern": f"^(?=(x+x+)+y{i})(a|b)\\1"} for i in range(20)]}}}},
        {"c": ["x" * 1000] * 900},
    ),
    "look-ahead at each character of a text": ({"properties": {"c": {"pattern": f"(?={SLOW})z"}}}, {"c": TEXT}),
    "look-behind in a name": ({"patternProperties": {"(?<=a)[ab]*c": True}}, {TEXT: 1}),
    "slow patterns for a text": ({"properties": {"c": {"not": {"pattern": SLOW}}}}, {"c": TEXT * 50}),
    "slow patterns for a name": ({"patternProperties": {SLOW: True}}, {TEXT * 50: 1}),
    "slow patterns for many names": (
        {"patternProperties": {SLOW: True}},
        {TEXT[:200] + str(i): 1 for i in range(4000)},
    ),
    "patterns of names": ({"propertyNames": {"not": {"pattern": SLOW}}}, {TEXT * 50: 1}),
    "elements that must differ, often": (
        {"properties": {"c": {"allOf": [{"uniqueItems": True}] * 100}}},
        {"c": list(range(100_000))},
    ),
    "lists within lists that must differ": (
        {"$defs": {"n": {"items": ref("n"), "uniqueItems": True}}, "properties": {"c": ref("n")}},
        {"c": [[i, deep_list(100)["c"]] for i in range(60)]},
    ),
    "unevaluated members": (unevaluated(8, "unevaluatedProperties"), {f"p{i}": i for i in range(20_000)}),
    "formats of each element": (
        {"properties": {"c": {"items": {"allOf": [{"format": "date-time"}] * 20}}}},
        {"c": ["2024-01-01T00:00:00Z"] * 40_000},
    ),
    "required members of each element": (
        {"properties": {"c": {"items": {"required": [str(i) for i in range(3000)]}}}},
        {"c": [{}] * 20_000},
    ),
}
FINE = {
    "elements that must differ": (
        {"properties": {"c": {"uniqueItems": True}}},
        {"c": [{"a": i} for i in range(20_000)]},
    ),
    "contains": ({"properties": {"c": {"contains": {"const": -1}}}}, {"c": list(range(50_000))}),
    "a list of rows": (
        {"properties": {"rows": {"items": {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}}}},
        {"rows": [{"a": i, "b": "x"} for i in range(20_000)]},
    ),
    "a tree": (
        {"$defs": {"n": {"properties": {"left": ref("n"), "right": ref("n"), "v": {"type": "integer"}}}}, **ref("n")},
        {"left": deep(100, "left"), "right": deep(100, "right"), "v": 1},
    ),
    "a linked list": ({"$defs": {"n": {"properties": {"c": ref("n")}}}, **ref("n")}, deep(300)),
    "lists within lists": ({"$defs": {"n": {"items": ref("n")}}, "properties": {"c": ref("n")}}, deep_list(300)),
    "many properties": (
        {"properties": {f"p{i}": {"type": "integer"} for i in range(500)}, "unevaluatedProperties": False},
        {f"p{i}": i for i in range(500)},
    ),
    "large params of which little is said": (
        {"required": ["a"], "properties": {"a": {}}},
        {"a": 1, "b": ["x"] * 200_000},
    ),
    "alternatives": (
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "allOf": [{"if": {"required": ["a"]}, "then": OBJECT}]},
        {"a": 1},
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def bounded():
    began = time.thread_time()
    yield
    assert time.thread_time() - began < MOST_SECONDS


@pytest.mark.parametrize("name", REFUSED)
def test_a_schema_that_multiplies_is_refused_with_the_definition(name):
    with pytest.raises(BadInput) as refused:
        check_schema(REFUSED[name], "schema")

    assert refused.value.fields["field"] == "schema"
    assert refused.value.remedy


@pytest.mark.parametrize("name", LARGE)
def test_a_value_that_takes_too_much_work_is_refused_before_it_is_checked(name):
    schema, value = LARGE[name]

    with pytest.raises(Costly, match="too much work"):
        Validator(schema).problem(value)


@pytest.mark.parametrize("name", FINE)
def test_typical_schemas_check_large_and_deep_values(name):
    schema, value = FINE[name]
    Validator(schema).problem(value)


@pytest.mark.parametrize("keyword", ["allOf", "anyOf"])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_the_most_expensive_allowed_check_is_short(keyword, levels):
    schema = {"properties": {"c": {"items": chain(levels, 12, keyword)["$defs"]["d0"]}}, **chain(levels, 12, keyword)}
    del schema["$ref"]
    places = places_of(schema)
    value = {"c": []}
    while units_of(places, value, MOST_UNITS) <= MOST_UNITS and len(value["c"]) < 100_000:
        value["c"] += [{}] * 1000
    value["c"] = value["c"][:-1000]
    with suppress(Costly):
        Validator(schema).problem(value)


def test_a_value_that_the_validator_gives_up_on_is_refused():
    schema = {"unevaluatedProperties": {"$ref": "#"}, "type": "object"}

    with pytest.raises(Costly, match="nested too deep"):
        Validator(schema).problem({"c": [deep(400), 1]} | deep(400) | {"d": 1})


def test_a_message_does_not_repeat_a_large_value():
    schema = {"properties": {"c": {"type": "integer"}}}
    problem = Validator(schema).problem({"c": "x" * 100_000})

    assert problem is not None
    assert problem.path == ["c"]
    assert len(problem.message) < 600
    assert "integer" in problem.message


def test_an_unresolvable_reference_is_refused():
    for reference in ("#/$defs/none", "#none", "#/a/0"):
        with pytest.raises(BadInput, match="does not exist"):
            check_schema({"$ref": reference, "a": []}, "schema")


def test_references_are_json_pointers():
    schema = {"$defs": {"a/b~c d": {"type": "integer"}}, "properties": {"x": {"$ref": "#/$defs/a~1b~0c%20d"}}}

    assert Validator(schema).problem({"x": 1}) is None
    assert Validator(schema).problem({"x": "1"}) is not None
