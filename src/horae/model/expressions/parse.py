"""The grammar of CEL: from tokens to a compiled expression.

Parts of CEL that have no use for JSON values are left out: bytes, unsigned numbers, messages and optional values.
"""

from horae.model.expressions.functions import FUNCTIONS, METHODS, compiled_pattern
from horae.model.expressions.loops import LOOPS, loop
from horae.model.expressions.meter import EvaluationError, spend_pattern_compilation
from horae.model.expressions.nodes import (
    Node,
    binary,
    call,
    choice,
    constant,
    has,
    index,
    list_of,
    logic,
    map_of,
    minus,
    name,
    negation,
    select,
)
from horae.model.expressions.tokens import Token, string_value, tokens_of
from horae.model.expressions.values import KINDS, whole

MOST_NESTED = 40  # levels of nested brackets, conditions and loops
_LITERALS = {"true": True, "false": False, "null": None}
_RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "in", "let", "loop"),
        *("package", "namespace", "return", "var", "void", "while"),
    )
)
_POWERS = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip


class ParsedExpression:
    """A compiled expression with the names of its variables."""

    __slots__ = ("node", "variables")

    def __init__(self, node: Node, variables: frozenset[str]) -> None:
        self.node, self.variables = node, variables


def parse(source: str) -> ParsedExpression:
    """Compile a text. Raises EvaluationError."""
    parser = _Parser(tokens_of(source))
    node = parser.expression()
    parser.expect_end()
    return ParsedExpression(node, frozenset(parser.variables))


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens, self._at, self._nested = tokens, 0, 0
        self._own: list[str] = []  # variables of the enclosing loops
        self.variables: set[str] = set()

    def expression(self) -> Node:
        """Parse a conditional expression or anything of higher precedence."""
        self._nested += 1
        if self._nested > MOST_NESTED:
            raise EvaluationError(f"it is nested more than {MOST_NESTED} levels deep")
        node = self._operators(1)
        if self._accept("?"):
            yes = self._operators(1)
            self._expect(":")
            node = choice(node, yes, self.expression())
        self._nested -= 1
        return node

    def expect_end(self) -> None:
        """Refuse further tokens after an expression."""
        if self._tokens[self._at].kind != "end":
            raise self._unexpected()

    def _operators(self, least: int) -> Node:
        """Parse binary operators with at least this precedence, from left to right."""
        node = self._unary()
        while True:
            token = self._tokens[self._at]
            power = _POWERS.get(token.text, 0) if token.kind in ("sign", "name") else 0
            if power < least or not power:
                return node
            if token.text in ("&&", "||"):
                node = self._logic(token.text, node, power + 1)
            else:
                self._at += 1
                node = binary(token.text, node, self._operators(power + 1))

    def _logic(self, sign: str, first: Node, least: int) -> Node:
        parts = [first]
        while self._accept(sign):
            parts.append(self._operators(least))
        return logic(sign, parts)

    def _unary(self) -> Node:
        if self._tokens[self._at].text not in ("!", "-"):
            return self._members(self._primary())
        signs = []
        while self._tokens[self._at].text in ("!", "-"):
            signs.append(self._next().text)
        if signs[-1] == "-" and self._tokens[self._at].kind in ("int", "float"):
            signs.pop()
            node = self._members(self._number("-"))
        else:
            node = self._members(self._primary())
        for sign in reversed(signs):
            node = negation(node) if sign == "!" else minus(node)
        return node

    def _members(self, node: Node) -> Node:
        while (text := self._tokens[self._at].text) in (".", "["):
            self._at += 1
            if text == "[":
                node = index(node, self.expression())
                self._expect("]")
            else:
                node = self._member(node, self._name())
        return node

    def _member(self, node: Node, of: str) -> Node:
        if not self._accept("("):
            return select(node, of)
        if of in LOOPS:
            return self._loop(of, node)
        at = self._at
        arguments = [node, *self._arguments(")")]
        function, count = METHODS.get(of, (None, 0))
        if function is None or count != len(arguments):
            raise EvaluationError(f"there is no method {of} with {len(arguments) - 1} arguments")
        if of == "matches" and self._tokens[at].kind == "text" and self._at == at + 2:
            spend_pattern_compilation()
            compiled_pattern(
                string_value(self._tokens[at])
            )  # refuses an invalid pattern when the expression is compiled
        return call(function, arguments)

    def _loop(self, macro: str, over: Node) -> Node:
        own = self._name()
        if own in _LITERALS or own in _RESERVED:
            raise EvaluationError(f"{own} cannot be the name of a loop variable")
        self._expect(",")
        self._own.append(own)
        bodies = self._arguments(")")
        self._own.pop()
        if not 1 <= len(bodies) <= LOOPS[macro]:
            raise EvaluationError(f"{macro}() needs a name and an expression")
        return loop(macro, over, own, bodies)

    def _primary(self) -> Node:
        token = self._tokens[self._at]
        if token.kind in ("int", "float"):
            return self._number("")
        self._next()
        if token.kind == "text":
            return constant(string_value(token))
        if token.kind == "name":
            return self._named(token.text)
        if token.text == "(":
            node = self.expression()
            self._expect(")")
            return node
        if token.text == "[":
            return list_of(self._arguments("]"))
        if token.text == "{":
            return self._map()
        self._at -= 1
        raise self._unexpected()

    def _named(self, of: str) -> Node:
        if of in _LITERALS:
            return constant(_LITERALS[of])
        if of in _RESERVED:
            self._at -= 1
            raise self._unexpected()
        if self._accept("("):
            return self._function(of)
        if of not in self._own:
            if of in KINDS:
                return constant(of)
            self.variables.add(of)
        return name(of)

    def _function(self, of: str) -> Node:
        arguments = self._arguments(")")
        if of == "has" and len(arguments) == 1:
            return has(arguments[0])
        function, count = FUNCTIONS.get(of, (None, 0))
        if function is None or count != len(arguments):
            raise EvaluationError(f"there is no function {of} with {len(arguments)} arguments")
        return call(function, arguments)

    def _map(self) -> Node:
        pairs = []
        while not self._accept("}"):
            key = self.expression()
            self._expect(":")
            pairs.append((key, self.expression()))
            if not self._accept(","):
                self._expect("}")
                break
        return map_of(pairs)

    def _arguments(self, closing: str) -> list[Node]:
        found: list[Node] = []
        while not self._accept(closing):
            found.append(self.expression())
            if not self._accept(","):
                self._expect(closing)
                break
        return found

    def _number(self, sign: str) -> Node:
        token = self._next()
        if token.kind == "float":
            return constant(float(sign + token.text))
        if len(token.text) > 20:
            raise EvaluationError(f"the number {token.text[:20]}... is too large")
        return constant(whole(int(sign + token.text, 16 if token.text[:2] in ("0x", "0X") else 10)))

    def _name(self) -> str:
        token = self._next()
        if token.kind != "name" or token.text in _RESERVED:
            self._at -= 1
            raise self._unexpected()
        return token.text

    def _next(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def _accept(self, text: str) -> bool:
        token = self._tokens[self._at]
        if token.text == text and token.kind == "sign":
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected(f", not {text!r}")

    def _unexpected(self, wanted: str = "") -> EvaluationError:
        token = self._tokens[self._at]
        if token.kind == "end":
            return EvaluationError(f"it ends too early{wanted.replace(', not', ', before')}")
        return EvaluationError(f"there is {token.text[:20]!r} at {token.at + 1}{wanted}")
