"""CEL: values of expressions, by the specification, and by the reference implementation where both support them."""

import math
from datetime import UTC, datetime, timedelta

import cel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horae.model.expressions.meter import EvaluationError, Meter, OverBudget
from horae.model.expressions.program import Program

SCOPE = {
    "params": {
        "n": 3, "f": 2.5, "list": [1, 2, 3], "m": {"a": 1}, "s": "hello", "nothing": None, "deep": {"a": {"b": "x"}},
        "at": "2024-03-01T10:00:00Z", "yes": True,
    }
}  # fmt: skip


def value(source, scope=SCOPE):
    return Program(source).value(scope, Meter())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2 * 3 - 4", 3),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("1 == 1.0 && 1 < 1.5 && 1 in [1.0]", True),
        ("true == 1 || '1' == 1 || null == false", False),
        ("1.0 / 0.0", math.inf),
        ("'a' + \"b\" + '''c\"d''' + r'\\n'", 'abc"d\\n'),
        ("'\\x41\\u00e9\\101\\n\\''", "AéA\n'"),
        ("0x1F + 1", 32),
        ("size('hé') + 'hé'.size() + size([1, 2]) + size({'a': 1})", 7),
        ("[1, 2, ] + [3]", [1, 2, 3]),
        ("{'a': 1, 2: [3],}", {"a": 1, 2: [3]}),
        ("params.list[0] + params['m'].a", 2),
        ("has(params.n) && !has(params.m.z)", True),
        ("params.m == {'a': 1.0} && [1, [2]] == [1.0, [2]]", True),
        ("1 / 0 == 1 || true", True),
        ("false && 1 / 0 == 1", False),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[0, 1].all(x, 1 / x == 5)", False),
        ("[].all(x, false) && ![].exists(x, true)", True),
        ("params.list.exists_one(x, x > 2)", True),
        ("params.list.map(x, x > 1, x * 2)", [4, 6]),
        ("params.list.filter(x, x != 2).map(x, [x, params.n])", [[1, 3], [3, 3]]),
        ("params.m.map(k, params.m[k])", [1]),
        ("[1].map(params, params + 1) + [params.n]", [2, 3]),
        ("[0].exists(params, params / 0 == 1) || params.n == 3", True),
        ("true ? (false ? 1 : 2) : false ? 3 : 4", 2),
        ("!!true && - -1 == 1", True),
        ("string(1) + string(1.5) + string(true) + string('x')", "11.5truex"),
        ("int('12') + int(1.9) + int(-1.9)", 12),
        ("double('1.5') + double(1)", 2.5),
        ("type(1) == int && type('') == string && type([]) == list && type(null) == null_type", True),
        ("timestamp(params.at).getFullYear() + timestamp(params.at).getMonth()", 2026),
        ("timestamp(params.at) + duration('1h30m')", datetime(2024, 3, 1, 11, 30, tzinfo=UTC)),
        ("timestamp(params.at) - timestamp('2024-02-29T10:00:00Z')", timedelta(days=1)),
        ("duration('90m').getHours() + duration('1.5s').getMilliseconds()", 1501),
        ("string(timestamp('2024-03-01T12:00:00+02:00')) + string(duration('90s'))", "2024-03-01T10:00:00Z90s"),
        ("'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')", True),
        ("'hello'.matches('^h.l') && !'hello'.matches('x')", True),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_an_expression_has_the_value_of_the_specification(source, expected):
    found = value(source)

    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("params.zzz", "there is no 'zzz'"),
        ("params.n.x", "int has no 'x'"),
        ("params.list[5]", "there is no element 5"),
        ("params.list[-1]", "there is no element -1"),
        ("1 + 1.0", r"there is no int \+ double"),
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "out of range"),
        ("timestamp('9999-12-31T00:00:00Z') + duration('100h')", "out of range"),
        ("'a' < 1", "cannot be ordered"),
        ("1 ? 2 : 3", "neither true nor false"),
        ("true && 1", "neither true nor false"),
        ("1 in 'abc'", "needs a list or a map"),
        ("3.all(x, true)", "needs a list or a map"),
        ("timestamp('x')", "timestamp"),
        ("int('0x1')", "int"),
        ("params.s.matches('(' + params.s)", "not a valid pattern"),
        ("has(params.n.b)", "int has no 'b'"),
        ("!1", "neither true nor false"),
        ("{1.5: 1}", "key of a map"),
        ("size(1)", "size"),
    ],
)
def test_an_evaluation_error_names_the_reason(source, told):
    with pytest.raises(EvaluationError, match=told):
        value(source)


@pytest.mark.parametrize(
    "source",
    [
        "", "1 +", "(1", "[1", "{'a'}", "'open", "params.", "params.in", "if", "1.", "a b", "foo(1)", "params.foo()",
        "size()", "has(params)", "x.all(1, true)", "x.all(y)", "x.map(y, 1, 2, 3)", "5u", "b'x'", "`a`", "a.?b",
        "'\\q'", "9223372036854775808", "'x'.matches('(')", "1 = 1", "x{a: 1}", "@", "'\\ud800'",
    ],
)  # fmt: skip
def test_an_invalid_expression_is_refused_before_evaluation(source):
    with pytest.raises(EvaluationError):
        Program(source)


def test_variables_of_an_expression_exclude_loop_variables():
    assert Program("a.b + c['d'] + [1].map(x, x + e)[0]").variables == {"a", "c", "e"}
    assert Program("[1].map(x, x) + [x]").variables == {"x"}
    assert Program("1 + 2").variables == frozenset()


LEAVES = st.sampled_from(
    ["1", "2", "0", "-3", "1.5", "'a'", "'b'", "true", "false", "null", "[]", "[1, 2]", "{'a': 1}", "params.n",
     "params.s", "params.list", "params.m", "params.m.a", "params.yes", "params.nothing", "params.zzz"]
)  # fmt: skip
SIGNS = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in"])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(
            inner, st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in"]), inner
        ).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} ? {t[1]} : {t[2]})"),
        inner.map(lambda one: f"!({one} == true)"),
        st.tuples(inner, inner).map(lambda t: f"[{t[0]}, {t[1]}]"),
        st.tuples(inner, inner).map(lambda t: f"{t[0]}[{t[1]}]"),
        st.tuples(inner, st.sampled_from(["map", "filter", "exists_one"]), inner).map(
            lambda t: f"{t[0]}.{t[1]}(x, {t[2]})"
        ),
        inner.map(lambda one: f"size({one})"),
    ),
    max_leaves=8,
)


def of_reference(source):
    try:
        return cel.compile(source).execute(SCOPE)
    except Exception:
        return EvaluationError


def of_ours(source):
    try:
        return value(source)
    except (EvaluationError, OverBudget):
        return EvaluationError


@settings(deadline=None, max_examples=300)
@given(EXPRESSIONS)
def test_expressions_agree_with_the_reference_implementation(source):
    assert repr(of_ours(source)) == repr(of_reference(source))
