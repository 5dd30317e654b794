"""The values of expressions, and numbers as the language reckons with them.

    None  bool  int  Real  decimal.Decimal  Text  Date  Data  Uuid  Url  Object
    Array  Set  OrderedSet  dict
"""

import decimal
import math
from dataclasses import dataclass

DECIMAL = decimal.Context(prec=38, rounding=decimal.ROUND_HALF_UP, Emin=-999999, Emax=999999,
                          traps=[])
# No quotient of two numbers of 38 digits and exponents within ±128 has more whole digits.
EXACT = decimal.Context(prec=400, Emin=-999999, Emax=999999, traps=[])


class Problem(Exception):
    """An evaluation that fails; the text is the kind of failure."""


@dataclass(frozen=True)
class Real:
    value: float


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Url:
    text: str


@dataclass(frozen=True)
class Date:
    seconds: float


@dataclass(frozen=True)
class Data:
    data: bytes


@dataclass(frozen=True)
class Uuid:
    text: str


@dataclass(frozen=True)
class Object:
    entity: str
    key: int


class Collection:
    def __init__(self, members):
        self.members = list(members)

    def __repr__(self):
        return f"{type(self).__name__}({self.members!r})"


class Array(Collection):
    pass


class OrderedSet(Collection):
    pass


class Set(Collection):
    pass


def is_number(value):
    return isinstance(value, (bool, int, Real, decimal.Decimal))


def to_float(value):
    if isinstance(value, Real):
        return value.value
    return float(value)


def fit(value):
    """A decimal in the range of NSDecimalNumber: 38 digits, exponents −128 to 127."""
    if not value.is_finite():
        raise Problem("overflow")
    if value == 0:
        return decimal.Decimal(0)
    _, digits, exponent = value.as_tuple()
    digits = list(digits)
    while digits and digits[-1] == 0:
        digits.pop()
        exponent += 1
    if exponent < -128 or (exponent > 127 and len(digits) + exponent - 127 > 38):
        raise Problem("overflow")
    return value


def to_decimal(value):
    """A whole real of 64 bits as it is, else its shortest decimal form; None where it is out of range."""
    if isinstance(value, decimal.Decimal):
        return value
    if isinstance(value, Real):
        if -2**63 <= value.value < 2**63 and value.value == int(value.value):
            return fit(decimal.Decimal(int(value.value)))
        try:
            return fit(DECIMAL.create_decimal(repr(value.value)))
        except Problem:
            return None
    return decimal.Decimal(int(value))


def order(a, b):
    """−1, 0 or 1 for two numbers."""
    if isinstance(a, decimal.Decimal) or isinstance(b, decimal.Decimal):
        x, y = to_decimal(a), to_decimal(b)
        if x is None or y is None:
            x, y = to_float(a), to_float(b)
    else:
        # Python compares integers with floats exactly.
        x = a.value if isinstance(a, Real) else int(a)
        y = b.value if isinstance(b, Real) else int(b)
    return (x > y) - (x < y)


def same(a, b):
    """Foundation's isEqual:."""
    if is_number(a) and is_number(b):
        return order(a, b) == 0
    if type(a) is not type(b):
        return False
    if isinstance(a, (Array, OrderedSet)):
        return len(a.members) == len(b.members) and all(map(same, a.members, b.members))
    if isinstance(a, Set):
        return len(a.members) == len(b.members) and all(
            any(same(x, y) for y in b.members) for x in a.members)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


def distinct(values):
    found = []
    for value in values:
        if not any(same(value, other) for other in found):
            found.append(value)
    return found


def integer(value):
    if not -(2**63) <= value < 2**63:
        raise Problem("overflow")
    return value


def real(value):
    if math.isinf(value) or math.isnan(value):
        raise Problem("overflow")
    return Real(value)


def arithmetic(symbol, a, b):
    for value in (a, b):
        if value is not None and not is_number(value):
            raise Problem("wrongKind")
    if a is None or b is None:
        return None
    if isinstance(a, decimal.Decimal) or isinstance(b, decimal.Decimal):
        return decimals(symbol, a, b)
    if not isinstance(a, Real) and not isinstance(b, Real):
        return integers(symbol, int(a), int(b))
    return reals(symbol, to_float(a), to_float(b))


def integers(symbol, a, b):
    if symbol == "+":
        return integer(a + b)
    if symbol == "-":
        return integer(a - b)
    if symbol == "*":
        return integer(a * b)
    if symbol == "**":
        if b < 0:
            return reals(symbol, float(a), float(b))
        if abs(a) > 1 and b >= 64:
            raise Problem("overflow")
        return integer(a**b if abs(a) > 1 else {0: int(b == 0), 1: 1, -1: -1 if b % 2 else 1}[a])
    if b == 0:
        raise Problem("divisionByZero")
    quotient = abs(a) // abs(b)
    if (a < 0) != (b < 0):
        quotient = -quotient
    return integer(quotient) if symbol == "/" else integer(a - quotient * b)


def reals(symbol, a, b):
    try:
        if symbol == "+":
            return real(a + b)
        if symbol == "-":
            return real(a - b)
        if symbol == "*":
            return real(a * b)
        if symbol == "**":
            if a == 0 and b < 0:
                raise Problem("divisionByZero")
            return real(math.pow(a, b))
        if b == 0:
            raise Problem("divisionByZero")
        return real(a / b if symbol == "/" else math.fmod(a, b))
    except (OverflowError, ValueError):
        raise Problem("overflow") from None


def decimals(symbol, a, b):
    x, y = to_decimal(a), to_decimal(b)
    if x is None or y is None:
        raise Problem("overflow")
    if symbol == "+":
        return fit(DECIMAL.add(x, y))
    if symbol == "-":
        return fit(DECIMAL.subtract(x, y))
    if symbol == "*":
        return fit(DECIMAL.multiply(x, y))
    if symbol == "**":
        if y != y.to_integral_value() or not 0 <= y <= 10_000:
            raise Problem("wrongKind")
        result = decimal.Decimal(1)
        for bit in bin(int(y))[2:]:
            result = fit(DECIMAL.multiply(result, result))
            if bit == "1":
                result = fit(DECIMAL.multiply(result, x))
        return result
    if y == 0:
        raise Problem("divisionByZero")
    if symbol == "/":
        return fit(DECIMAL.divide(x, y))
    return fit(EXACT.remainder(x, y))


def number_text(value):
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, decimal.Decimal):
        text = format(value, "f")
        if "." in text:
            text = text.rstrip("0").rstrip(".")
        return text
    text = repr(value.value)
    return text[:-2] if text.endswith(".0") else text
