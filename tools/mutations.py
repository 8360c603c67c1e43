"""Mutations of a module: small changes of its text, each of which changes what it does.

A mutation replaces the text of one operator, constant or statement and leaves the rest of the file as it is, so that a
test that reads the source does not fail for another reason.
"""

import ast
import itertools
import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

OPERATORS = {
    ast.Lt: ("<", "<=", ">="), ast.LtE: ("<=", "<", ">"), ast.Gt: (">", ">=", "<="), ast.GtE: (">=", ">", "<"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"),
}  # fmt: skip
"""Each operator as it is written, and what replaces it."""

NAME = re.compile(r"[\w.:/-]+")
"""Texts that are keys, names or paths; other texts are for people, and their wording is no behaviour."""

LOGS = re.compile(r"(\w+\.)*_?(log|logger)\.(debug|info)\b")

Place = tuple[int, int]


class Mutation(NamedTuple):
    """One change: its lines, whether they run at import, the span and its new text."""

    lines: tuple[int, int]
    at_import: bool
    start: int
    end: int
    new: str
    what: str

    def apply(self, text: str) -> str:
        """Return the text of the module with the change."""
        return text[: self.start] + self.new + text[self.end :]


def mutations(text: str) -> list[Mutation]:
    """Return every mutation of a module."""
    return list(dict.fromkeys(_Walk(text).walk(ast.parse(text))))


class _Walk:
    """Walks a module, leaves out the nodes without behaviour, and turns positions of nodes into offsets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a position, whose column counts bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> Place:
        """Return where the text of a node begins and ends."""
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno or 0, node.end_col_offset or 0)

    def walk(self, node: ast.AST, *, at_import: bool = True) -> Iterator[Mutation]:
        """Yield the mutations of a node and of the nodes in it."""
        if isinstance(node, ast.expr | ast.stmt):
            for start, end, new in self.changes(node):
                if self.text[start:end] != new:
                    what = f"`{_short(self.text[start:end])}` to `{_short(new)}`"
                    yield Mutation((node.lineno, node.end_lineno or node.lineno), at_import, start, end, new, what)
        for child in children(node):
            if not is_excluded(child):
                yield from self.walk(child, at_import=at_import and not is_body(child, node))

    def changes(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        """Yield the replacements for one node."""
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield from self.operator(op, left, right)
            case ast.BoolOp(op=op, values=values):
                for left, right in itertools.pairwise(values):
                    yield from self.operator(op, left, right)
            case ast.BinOp(left=left, op=op, right=right) if not (is_text(left) or is_text(right)):
                yield from self.operator(op, left, right)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                start, end = self.span(node)[0], self.span(operand)[0]
                yield start, end, re.sub(r"not\s*", "", self.text[start:end], count=1)
            case ast.Constant(value=value):
                yield from ((*self.span(node), new) for new in constants(value))
            case _:
                yield from self.statement(node)

    def statement(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        """Yield the replacements for a statement, or for the test of a condition."""
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                if not isinstance(test, ast.Compare | ast.UnaryOp | ast.Constant):
                    start, end = self.span(test)
                    yield start, end, f"not ({self.text[start:end]})"
            case ast.Return(value=value) if value and not isinstance(value, ast.Constant):
                yield *self.span(node), "return None"
            case ast.Break():
                yield *self.span(node), "continue"
            case ast.Continue():
                yield *self.span(node), "break"
            case ast.Raise() | ast.AugAssign() | ast.Delete() | ast.Expr(value=ast.Call() | ast.Await()):
                yield *self.span(node), "pass"
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield *self.span(node), "pass"
            case _:
                pass

    def operator(self, op: ast.AST, left: ast.expr, right: ast.expr) -> Iterator[tuple[int, int, str]]:
        """Yield what replaces the operator between two operands."""
        written, *others = OPERATORS.get(type(op), ("",))
        start, end = self.span(left)[1], self.span(right)[0]
        pattern = re.escape(written).replace(r"\ ", r"\s+")
        if found := re.search(rf"\b{pattern}\b" if written.isalpha() else pattern, self.text[start:end]):
            yield from ((start + found.start(), start + found.end(), other) for other in others)


def is_excluded(node: ast.AST) -> bool:
    """Tell whether a node is no behaviour. Each case has its reason."""
    match node:
        case (
            ast.JoinedStr()  # a text for people; before Python 3.12 the positions in it are wrong
            | ast.Expr(value=ast.Constant())  # a docstring, or the dots of a protocol
            | ast.Call(func=ast.Name(id="cast" | "TypeVar" | "NewType" | "ParamSpec"))  # mypy checks types
            | ast.keyword(arg="init" | "strict")  # mypy checks who makes a record; `zip` asserts its lengths
            | ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")])  # no line runs differently
            | ast.If(test=ast.Name(id="TYPE_CHECKING"))  # never runs
            | ast.FunctionDef(decorator_list=[ast.Name(id="overload")])  # never runs
        ):
            return True
        case ast.Expr(value=ast.Call(func=func)):  # lines of a log below the level of warnings
            return bool(LOGS.fullmatch(ast.unparse(func)))
        case _:
            return False


def children(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that may be behaviour: no annotations, and no decorators, which are declarations."""
    match node:
        case ast.AnnAssign(value=value):
            return [value] if value else []
        case ast.FunctionDef(args=args, body=body) | ast.AsyncFunctionDef(args=args, body=body):
            return [*args.defaults, *filter(None, args.kw_defaults), *body]
        case ast.ClassDef(body=body):
            return [*body]
        case _:
            return [*ast.iter_child_nodes(node)]


def is_body(node: ast.AST, of: ast.AST) -> bool:
    """Tell whether a node runs when a function is called, not when it is defined."""
    match of:
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            return node in body
        case ast.Lambda(body=body):
            return node is body
        case _:
            return False


def constants(value: object) -> Iterator[str]:
    """Yield what replaces a constant."""
    match value:
        case bool():
            yield repr(not value)
        case int():
            yield repr(value + 1)
        case float():
            yield repr(value * 2 + 1)
        case str() if NAME.fullmatch(value):
            yield repr(value + "_")
        case _:
            pass


def is_text(node: ast.expr) -> bool:
    """Tell whether an operand is a text, with which most operators fail at once."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _short(text: str) -> str:
    return textwrap.shorten(text, 60, placeholder=" ...")
