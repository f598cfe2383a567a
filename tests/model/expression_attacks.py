"""Hostile expressions: each one does as much work as possible."""

LITERAL = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
DATA = {
    "l": list(range(1000)),
    "s": "x" * 1_000_000,
    "long": {"x" * 500_000: 1},
    "same": [{"a": "x" * 100_000 + "a"}, {"a": "x" * 100_000 + "b"}],
    "short": "a" * 2_400,
    "m": {str(i): {"a": i, "b": [i]} for i in range(10_000)},
    "d": [{"a": i, "b": "x"} for i in range(10_000)],
}


def nested(over: str, depth: int, body: str, macro: str = "all") -> str:
    """Nest loops to a given depth."""
    names = [f"v{i}" for i in range(depth)]
    return "".join(f"{over}.{macro}({name}, " for name in names) + body + ")" * depth


LITERALS = {  # refused or computed at definition, since they have no variables
    "seven loops over literals": nested(LITERAL, 7, "true"),
    "loops in both parts": nested(LITERAL, 3, "false", "exists") + " || " + nested(LITERAL, 4, "true"),
    "failing loops": nested(LITERAL, 6, "1 / 0 == 1", "exists"),
    "map of maps": nested(LITERAL, 5, "[v0, v1]", "map"),
    "text that doubles": "['aaaaaaaaaa']" + ".map(x, x + x)" * 60,
    "list that doubles": "[[1]]" + ".map(x, x + x)" * 60,
    "shared parts": "[[1]]" + ".map(x, [x, x])" * 60,
    "shared parts compared": "[[1]]" + ".map(x, [x, x])" * 60 + " == [[1]]" + ".map(x, [x, x])" * 60,
    "shared maps": "[{'a': 1}]" + ".map(x, {'a': x, 'b': x})" * 60,
    "parentheses": "(" * 2000 + "1" + ")" * 2000,
    "lists": "[" * 2000 + "]" * 2000,
    "conditions": "true ? 1 : " * 350 + "2",
    "signs": "-" * 4000 + "1",
    "sums": "+".join(["1"] * 2000),
    "ors": "||".join(["false"] * 580),
    "a long list": "[" + ",".join(["1"] * 2000) + "]",
    "a long text": "'" + "x" * 1_000_000 + "'",
    "a large number": "9" * 4000,
    "quotes": "'" * 4095,
    "a large pattern": "'x'.matches('(x{1,200}){1,200}')",
    "a backtracking pattern": "'" + "x" * 3000 + "'.matches('(x+x+)+y')",
    "times": nested(LITERAL, 5, "timestamp('2024-03-01T10:00:00.5+02:00') > timestamp('2023-03-01T10:00:00Z')"),
}
OVER_DATA = {  # accepted at definition, and stopped when the data is large
    "loops": nested("params.l", 4, "true"),
    "sums in loops": nested("params.l", 4, "v0 + v1 * v2 - v3 == v0 || true"),
    "failures that are made up for": nested("params.l", 3, "v2.x || v2.y || true"),
    "failures": nested("params.l", 3, "v2.x.y", "exists"),
    "map of maps": nested("params.l", 3, "[v0, v1, v2]", "map"),
    "texts": "params.l.map(a, params.s + string(a))",
    "maps compared": "params.l.all(a, params.m == params.m)",
    "elements compared": "params.l.all(a, !('z' in params.d))",
    "elements kept": "params.d.filter(a, size(params.d.filter(b, b.a >= 0)) > 0)",
    "texts searched": "params.l.all(a, !params.s.contains('xxxxxxxxxxxxxxxy'))",
    "texts matched": "params.l.all(a, !params.s.matches('(x+x+)+y'))",
    "patterns from data": "params.l.all(a, !'xxxxxxxx'.matches('(x|y){20}[a-z]{60}' + string(a)))",
    "spans": nested("params.l", 2, "duration('1h1m1s1ms1us1ns1h1m1s') > duration('-1h1m')"),
    "numbers": nested("params.l", 2, "double('" + "1" * 40 + "." + "1" * 40 + "') > 0.0"),
    "texts of numbers": nested("params.l", 2, "string(1.2345678e300) != ''"),
    "keys": "params.m.map(k, params.m.map(j, params.m[j]))",
    "whole data in a list": "params.l.map(a, params)",
    "long keys written out": "params.l.map(a, {params.s: a})",
    "maps with long keys written out": "params.l.map(a, params.long)",
    "long names that are missing": nested("params.l", 2, "params.m[params.s + 'y'] == 1", "exists"),
    "missing names of data": nested("params.l", 2, "params.m[params.s] == 1", "exists"),
    "texts that differ at their ends": nested("params.l", 3, "params.same[0].a != params.same[1].a"),
    "long keys compared": nested("params.l", 3, "params.long == params.long"),
    "long keys looked for": nested("params.l", 3, "!(params.s in params.long)"),
    "short texts searched": nested("params.l", 2, f"!params.short.contains('{'a' * 800}b{'a' * 700}')"),
    "patterns that an automaton is slow at": "params.l.all(a, !params.short.matches('[ab]*a[ab]{60}c'))",
}
