"""Reads the expression language of mapping models: an independent parser.

Written from the language's description (NSExpression and NSPredicate format strings), not from
the Swift sources. A tree is a tuple whose first member names the kind:

    ('const', value)  ('var', name)  ('self',)  ('path', base, keys)  ('function', r, selector, args)
    ('call', name, args)  ('list', members)  ('cast', e, type)  ('ternary', p, a, b)
    ('subquery', e, variable, p)  ('element', e, place)  ('op', symbol, a, b)
    ('compare', modifier, operator, options, a, b)  ('and', ps)  ('or', ps)  ('not', p)  ('truth', b)

Keys of a path are ('key', name) or ('@', name).
"""

import re
from values import Real, Text

TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.\d+|\.\d+|\d+)(?:[eE][-+]?\d+)?)
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<variable>\$\w+) | (?P<at>@\w+) | (?P<escaped>\#\w+)
    | (?P<word>[^\W\d]\w*(?::(?!=)\w*)*)
    | (?P<symbol>:=|\*\*|==|!=|<>|<=|>=|=<|=>|&&|\|\||[=<>!+\-*/()\[\]{},.])
    )""",
    re.VERBOSE | re.DOTALL,
)
OPERATORS = {"=": "==", "==": "==", "!=": "!=", "<>": "!=", "<": "<", ">": ">", "<=": "<=",
             "=<": "<=", ">=": ">=", "=>": ">="}
WORD_OPERATORS = {"BETWEEN", "IN", "CONTAINS", "BEGINSWITH", "ENDSWITH", "LIKE", "MATCHES"}


class BadSyntax(Exception):
    pass


def unescape(body):
    result, place = [], 0
    while place < len(body):
        char = body[place]
        if char != "\\":
            result.append(char)
            place += 1
            continue
        mark = body[place + 1]
        place += 2
        if mark == "u":
            result.append(chr(int(body[place:place + 4], 16)))
            place += 4
        else:
            result.append({"n": "\n", "t": "\t", "r": "\r"}.get(mark, mark))
    # Halves of surrogate pairs that were escaped one by one become one character again.
    return "".join(result).encode("utf-16", "surrogatepass").decode("utf-16")


def tokens(text):
    place, found = 0, []
    text = text.rstrip()
    while place < len(text):
        match = TOKEN.match(text, place)
        if not match or match.end() == place:
            raise BadSyntax(f"character {place + 1}")
        found.append((match.lastgroup, match.group(match.lastgroup)))
        place = match.end()
    found.append(("end", ""))
    return found


class Parser:
    def __init__(self, text):
        self.tokens = tokens(text)
        self.place = 0

    # --- tokens
    def peek(self):
        return self.tokens[self.place]

    def next(self):
        self.place += 1
        return self.tokens[self.place - 1]

    def take(self, symbol):
        if self.peek() == ("symbol", symbol):
            self.place += 1
            return True
        return False

    def expect(self, symbol):
        if not self.take(symbol):
            raise BadSyntax(f"expected {symbol}, found {self.peek()[1]}")

    def word(self):
        kind, text = self.peek()
        return text.upper() if kind == "word" else None

    # --- predicates
    def whole(self):
        tree = self.disjunction()
        if self.peek()[0] != "end":
            raise BadSyntax("expected the end")
        return tree

    def disjunction(self):
        parts = [self.conjunction()]
        while self.word() == "OR" or self.peek() == ("symbol", "||"):
            self.next()
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else ("or", parts)

    def conjunction(self):
        parts = [self.negation()]
        while self.word() == "AND" or self.peek() == ("symbol", "&&"):
            self.next()
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else ("and", parts)

    def negation(self):
        if self.word() == "NOT" or self.peek() == ("symbol", "!"):
            self.next()
            return ("not", self.negation())
        return self.comparison()

    def comparison(self):
        modifier = None
        if self.word() in ("ANY", "SOME", "ALL", "NONE"):
            modifier = self.next()[1].upper()
        left = self.sum()
        kind, text = self.peek()
        if kind == "symbol" and text in OPERATORS:
            operator = OPERATORS[text]
        elif self.word() in WORD_OPERATORS:
            operator = self.word()
        else:
            return left
        self.next()
        options = ""
        if self.take("["):
            options = self.next()[1].lower()
            self.expect("]")
        right = self.sum()
        if modifier == "NONE":
            return ("not", ("compare", "ANY", operator, options, left, right))
        return ("compare", "ANY" if modifier == "SOME" else modifier, operator, options, left, right)

    # --- arithmetic
    def sum(self):
        return self.binary(("+", "-"), self.product)

    def product(self):
        return self.binary(("*", "/"), lambda: self.binary(("**",), self.unary))

    def binary(self, symbols, part):
        left = part()
        while self.peek()[0] == "symbol" and self.peek()[1] in symbols:
            symbol = self.next()[1]
            left = ("op", symbol, left, part())
        return left

    def unary(self):
        if not self.take("-"):
            closed = self.peek() == ("symbol", "(")
            return self.postfix(self.primary(), closed)
        kind, text = self.peek()
        if kind == "number":
            self.next()
            return self.postfix(("const", number("-" + text)))
        return ("op", "*", ("const", -1), self.unary())

    def postfix(self, tree, closed=False):
        """What stands behind parentheses is asked of what they come to."""
        while True:
            if self.peek() == ("symbol", "."):
                keys = self.keys()
                if tree[0] == "path" and not (closed and any(kind == "@" for kind, _ in tree[2])):
                    tree = ("path", tree[1], tree[2] + keys)
                else:
                    tree = ("path", tree, keys)
            elif self.peek() == ("symbol", "["):
                self.next()
                if self.word() in ("FIRST", "LAST", "SIZE"):
                    place = self.next()[1].upper()
                else:
                    place = self.sum()
                self.expect("]")
                tree = ("element", tree, place)
            else:
                return tree

    def keys(self):
        found = []
        while self.take("."):
            kind, text = self.next()
            if kind == "word":
                found.append(("key", text))
            elif kind == "escaped":
                found.append(("key", text[1:]))
            elif kind == "at":
                found.append(("@", text[1:]))
            else:
                raise BadSyntax("expected a key")
        return found

    def primary(self):
        kind, text = self.next()
        if kind == "string":
            return ("const", Text(unescape(text[1:-1])))
        if kind == "number":
            return ("const", number(text))
        if kind == "variable":
            return ("var", text[1:])
        if kind == "escaped":
            return ("path", ("self",), [("key", text[1:])])
        if (kind, text) == ("symbol", "("):
            tree = self.disjunction()
            self.expect(")")
            return tree
        if (kind, text) == ("symbol", "{"):
            return ("list", self.arguments("}"))
        if kind != "word":
            raise BadSyntax(f"expected a value, found {text}")
        if text == "godwit" and self.peek() == ("symbol", "."):
            self.next()
            name = self.next()[1]
            self.expect("(")
            return ("call", "godwit." + name, self.arguments(")"))
        if self.take("("):
            return self.call(text)
        upper = text.upper()
        literals = {"NULL": None, "NIL": None, "TRUE": True, "YES": True, "FALSE": False, "NO": False}
        if upper in literals:
            return ("const", literals[upper])
        if upper == "SELF":
            return ("self",)
        if upper in ("TRUEPREDICATE", "FALSEPREDICATE"):
            return ("truth", upper == "TRUEPREDICATE")
        return ("path", ("self",), [("key", text)])

    def arguments(self, mark):
        found = []
        if self.take(mark):
            return found
        while True:
            found.append(self.sum())
            if self.take(mark):
                return found
            self.expect(",")

    def call(self, name):
        upper = name.upper()
        if upper == "TERNARY":
            test = self.disjunction()
            self.expect(",")
            return ("ternary", test, *self.arguments(")"))
        if upper == "SUBQUERY":
            collection = self.sum()
            self.expect(",")
            variable = self.next()[1][1:]
            self.expect(",")
            test = self.disjunction()
            self.expect(")")
            return ("subquery", collection, variable, test)
        arguments = self.arguments(")")
        if upper == "FUNCTION":
            return ("function", arguments[0], arguments[1][1].text, arguments[2:])
        if upper == "CAST":
            return ("cast", arguments[0], arguments[1][1].text)
        return ("call", name.lower().rstrip(":") if name.count(":") == 1 else name, arguments)


def number(text):
    if "x" in text.lower() and "." not in text:
        return int(text, 16)
    if re.fullmatch(r"-?\d+", text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    return Real(float(text))


def parse(text):
    return Parser(text).whole()
