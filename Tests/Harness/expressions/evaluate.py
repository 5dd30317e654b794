"""Evaluates expressions over objects in memory: an independent evaluator.

Written from the language's rules (core-data-migration.md §4), not from the Swift sources.
"""

import base64
import datetime
import decimal
import math
import re
import unicodedata

from language import parse
from values import (Array, Collection, Data, Date, Object, OrderedSet, Problem, Real, Set, Text,
                    Url, Uuid, arithmetic, distinct, integer, is_number, number_text, order, real,
                    same, to_decimal, to_float)

INFIX = {"add:to": "+", "from:subtract": "-", "multiply:by": "*", "divide:by": "/",
         "modulus:by": "%", "raise:topower": "**"}
KEYS = {
    Text: {"length", "uppercaseString", "lowercaseString", "intValue", "integerValue",
           "longLongValue", "doubleValue", "floatValue", "boolValue", "description",
           "lastPathComponent", "pathExtension"},
    Date: {"timeIntervalSinceReferenceDate", "timeIntervalSince1970", "description"},
    Data: {"length"}, Uuid: {"UUIDString", "description"}, Url: {"absoluteString", "description"},
}
NUMBER_KEYS = {"stringValue", "doubleValue", "floatValue", "boolValue", "integerValue",
               "longLongValue", "intValue", "description"}


def units(text):
    return len(text.encode("utf-16-le")) // 2


def truncated(value):
    if isinstance(value, Real):
        whole = math.trunc(value.value)
    else:
        whole = int(value)
    return integer(whole)


def narrow(value):
    import struct
    try:
        return real(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        raise Problem("overflow") from None


def fold(text, options):
    if "n" in options:
        return text
    if "c" in options:
        text = text.casefold()
    if "d" in options:
        text = "".join(c for c in unicodedata.normalize("NFD", text)
                       if unicodedata.category(c) != "Mn")
    if "c" in options:
        text = text.casefold()
    return text


def like(text, pattern):
    expression, escaped = [], False
    for char in pattern:
        if escaped:
            expression.append(re.escape(char))
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            expression.append({"*": ".*", "?": "."}.get(char) or re.escape(char))
    if escaped:
        expression.append(re.escape("\\"))
    return re.fullmatch("".join(expression), text, re.DOTALL) is not None


def prefix_integer(text, low, high):
    match = re.match(r"[ \t\n\v\f\r]*([-+]?[0-9]+)", text)
    return max(low, min(high, int(match.group(1)))) if match else 0


def prefix_real(text):
    match = re.match(r"[ \t\n\v\f\r]*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)", text)
    return float(match.group(1)) if match else 0.0


PLAIN = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


class Evaluator:
    """`graph` is {(entity, key): {property: value}}; objects know nothing else."""

    def __init__(self, graph):
        self.graph = graph

    def run(self, text, source):
        self.source = source
        self.variables = {}
        tree = parse(text)
        if tree[0] in ("compare", "and", "or", "not", "truth"):
            return self.holds(tree)
        return self.value(tree)

    # --- values
    def value(self, tree):
        return getattr(self, "value_" + tree[0])(*tree[1:])

    def value_const(self, value):
        return value

    def value_var(self, name):
        if name in self.variables:
            return self.variables[name]
        if name == "source":
            return self.source
        raise Problem("unknownVariable")

    def value_self(self):
        return self.source

    def value_path(self, base, keys):
        return self.follow(self.value(base), keys)

    def value_list(self, members):
        return Array(self.value(member) for member in members)

    def value_op(self, symbol, a, b):
        x = self.value(a)
        return arithmetic(symbol, x, self.value(b))

    def value_ternary(self, test, then, otherwise):
        return self.value(then if self.holds(test) else otherwise)

    def value_subquery(self, collection, variable, test):
        found = self.value(collection)
        if found is None:
            return None
        if not isinstance(found, Collection):
            raise Problem("wrongKind")
        hidden = self.variables.get(variable)
        kept = []
        for member in found.members:
            self.variables[variable] = member
            if self.holds(test):
                kept.append(member)
        if hidden is None:
            self.variables.pop(variable, None)
        else:
            self.variables[variable] = hidden
        return type(found)(kept)

    def value_element(self, collection, place):
        found = self.value(collection)
        if found is None:
            return None
        if not isinstance(found, Collection):
            raise Problem("wrongKind")
        members = found.members
        if place == "FIRST":
            return members[0] if members else None
        if place == "LAST":
            return members[-1] if members else None
        if place == "SIZE":
            return len(members)
        index = self.value(place)
        if index is None:
            return None
        if isinstance(index, bool) or not isinstance(index, int):
            raise Problem("wrongKind")
        if not 0 <= index < len(members):
            raise Problem("badIndex")
        return members[index]

    def value_cast(self, operand, kind):
        value = self.value(operand)
        if value is None:
            return None
        if kind == "NSNumber":
            if is_number(value):
                return value
            if isinstance(value, Date):
                return Real(value.seconds)
            if isinstance(value, Text):
                return self.plain_number(value.text)
        if kind == "NSDecimalNumber":
            if is_number(value):
                found = to_decimal(value)
                if found is None:
                    raise Problem("overflow")
                return found
            if isinstance(value, Text):
                if not PLAIN.fullmatch(value.text):
                    raise Problem("notConvertible")
                return decimal.Decimal(value.text)
        if kind == "NSDate":
            if isinstance(value, Date):
                return value
            if is_number(value):
                return Date(to_float(value))
        if kind == "NSString":
            text = self.description(value)
            if text is not None:
                return Text(text)
        raise Problem("wrongKind")

    def plain_number(self, text):
        if not PLAIN.fullmatch(text):
            raise Problem("notConvertible")
        if re.fullmatch(r"[-+]?[0-9]+", text) and -(2**63) <= int(text) < 2**63:
            return int(text)
        return real(float(text))

    def description(self, value):
        if isinstance(value, (Text, Url, Uuid)):
            return value.text
        if is_number(value):
            return number_text(value)
        if isinstance(value, Date) and abs(value.seconds) < 1e12:
            # The calendar repeats after 400 years; datetime knows only some of them.
            seconds = math.floor(value.seconds)
            eras, rest = divmod(seconds, 146097 * 86400)
            moment = datetime.datetime(2001, 1, 1) + datetime.timedelta(seconds=rest)
            year = moment.year + 400 * eras
            return f"{'-' if year < 0 else ''}{abs(year):04}{moment:-%m-%d %H:%M:%S} +0000"
        return None

    # --- key paths
    def follow(self, value, keys):
        for place, (kind, name) in enumerate(keys):
            if value is None:
                return None
            if kind == "@":
                return self.collect(name, value, keys[place + 1:])
            value = self.key(value, name)
        return value

    def key(self, value, name):
        if name == "self":
            return value
        if value is None:
            return None
        if isinstance(value, Object):
            row = self.graph[(value.entity, value.key)]
            if name not in row:
                raise Problem("unknownKey")
            return row[name]
        if isinstance(value, Collection):
            found = [self.key(member, name) for member in value.members]
            if isinstance(value, Array):
                return Array(found)
            return type(value)(distinct(x for x in found if x is not None))
        known = NUMBER_KEYS if is_number(value) else KEYS.get(type(value), set())
        if name not in known:
            raise Problem("unknownKey")
        return self.message(value, name, [])

    def collect(self, name, collection, rest):
        if not isinstance(collection, Collection):
            raise Problem("wrongKind")
        if name == "count":
            return len(collection.members)
        values = [self.follow(member, rest) for member in collection.members]
        flat = self.flat(values)
        present = [value for value in flat if value is not None]
        if name == "sum":
            return self.sum([0 if value is None else value for value in flat])
        if name == "avg":
            return self.average([0 if x is None else x for x in flat]) if flat else Real(0.0)
        if name in ("min", "max"):
            return self.extreme(present, -1 if name == "min" else 1)
        if name == "unionOfObjects":
            return Array(value for value in values if value is not None)
        if name == "distinctUnionOfObjects":
            return Array(distinct(value for value in values if value is not None))
        if name in ("unionOfArrays", "unionOfSets"):
            return Array(present)
        if name == "distinctUnionOfArrays":
            return Array(distinct(present))
        if name == "distinctUnionOfSets":
            return Set(distinct(present))
        raise Problem("unknownCollectionOperator")

    def flat(self, values):
        found = []
        for value in values:
            found.extend(value.members if isinstance(value, Collection) else [value])
        return found

    # --- statistics
    def sum(self, values):
        total = 0
        for value in values:
            if value is not None:
                total = arithmetic("+", total, value)
        return total

    def average(self, values):
        values = [value for value in values if value is not None]
        if not values:
            return None
        total = self.sum(values)
        if not isinstance(total, decimal.Decimal):
            total = Real(to_float(total))
        return arithmetic("/", total, len(values))

    def extreme(self, values, wanted):
        best = None
        for value in values:
            if value is not None and (best is None or self.order(value, best) == wanted):
                best = value
        return best

    def numbers(self, values):
        values = [value for value in values if value is not None]
        if not all(map(is_number, values)):
            raise Problem("wrongKind")
        return values

    def sorted(self, values):
        import functools
        return sorted(self.numbers(values), key=functools.cmp_to_key(order))

    def order(self, a, b):
        if is_number(a) and is_number(b):
            return order(a, b)
        if type(a) is type(b) and isinstance(a, (Text, Url)):
            return (a.text > b.text) - (a.text < b.text)
        if isinstance(a, Date) and isinstance(b, Date):
            return (a.seconds > b.seconds) - (a.seconds < b.seconds)
        raise Problem("notComparable")

    # --- messages
    def value_function(self, receiver, selector, arguments):
        target = self.value(receiver)
        arguments = [self.value(argument) for argument in arguments]
        if selector.count(":") != len(arguments):
            raise Problem("argumentCount")
        if target is None:
            return None
        if selector == "valueForKey:":
            return self.key(target, self.text(arguments[0]))
        if selector == "valueForKeyPath:":
            keys = [("@", part[1:]) if part.startswith("@") else ("key", part)
                    for part in self.text(arguments[0]).split(".") if part]
            return self.follow(target, keys)
        if selector == "isEqual:":
            return same(target, arguments[0])
        if isinstance(target, Collection):
            return self.collection_message(target.members, selector, arguments)
        found = self.message(target, selector, arguments)
        if found is NotImplemented:
            raise Problem("unknownSelector")
        return found

    def text(self, value):
        if not isinstance(value, Text):
            raise Problem("wrongKind")
        return value.text

    def collection_message(self, members, selector, arguments):
        if selector == "count":
            return len(members)
        if selector in ("firstObject", "anyObject"):
            return members[0] if members else None
        if selector == "lastObject":
            return members[-1] if members else None
        if selector == "allObjects":
            return Array(members)
        if selector == "componentsJoinedByString:":
            separator = self.text(arguments[0])
            parts = []
            for member in members:
                text = self.description(member)
                if text is None:
                    raise Problem("wrongKind")
                parts.append(text)
            return Text(separator.join(parts))
        raise Problem("unknownSelector")

    def message(self, value, name, arguments):
        if name == "description":
            text = self.description(value)
            return NotImplemented if text is None else Text(text)
        if isinstance(value, Text):
            return self.text_message(value.text, name, arguments)
        if is_number(value):
            if name == "stringValue":
                return Text(number_text(value))
            if name == "doubleValue":
                return Real(to_float(value))
            if name == "floatValue":
                return narrow(to_float(value))
            if name == "boolValue":
                return order(value, 0) != 0
            if name in ("integerValue", "longLongValue", "intValue"):
                whole = truncated(value)
                if name == "intValue" and not -(2**31) <= whole < 2**31:
                    raise Problem("overflow")
                return whole
        if isinstance(value, Date):
            if name == "timeIntervalSinceReferenceDate":
                return Real(value.seconds)
            if name == "timeIntervalSince1970":
                return Real(value.seconds + 978307200.0)
            if name == "dateByAddingTimeInterval:":
                if arguments[0] is None:
                    return None
                if not is_number(arguments[0]):
                    raise Problem("wrongKind")
                return Date(real(value.seconds + to_float(arguments[0])).value)
        if isinstance(value, Data) and name == "length":
            return len(value.data)
        if isinstance(value, Uuid) and name == "UUIDString":
            return Text(value.text)
        if isinstance(value, Url) and name == "absoluteString":
            return Text(value.text)
        return NotImplemented

    def text_message(self, text, name, arguments):
        if name == "length":
            return units(text)
        if name == "uppercaseString":
            return Text("".join(c.upper() for c in text))
        if name == "lowercaseString":
            return Text("".join(c.lower() for c in text))
        if name == "intValue":
            return prefix_integer(text, -(2**31), 2**31 - 1)
        if name in ("integerValue", "longLongValue"):
            return prefix_integer(text, -(2**63), 2**63 - 1)
        if name == "doubleValue":
            return real(prefix_real(text))
        if name == "floatValue":
            return narrow(real(prefix_real(text)).value)
        if name == "boolValue":
            return re.match(r"[ \t\n\v\f\r]*[-+]?0*[YyTt1-9]", text) is not None
        if name == "lastPathComponent":
            return Text(self.last_component(text))
        if name == "pathExtension":
            last = self.last_component(text)
            return Text(last.rsplit(".", 1)[1] if "." in last[1:] else "")
        if name == "substringFromIndex:" or name == "substringToIndex:":
            index = arguments[0]
            if index is None:
                return None
            if isinstance(index, bool) or not isinstance(index, int):
                raise Problem("wrongKind")
            if not 0 <= index <= units(text):
                raise Problem("badIndex")
            data = text.encode("utf-16-le")
            part = data[2 * index:] if name == "substringFromIndex:" else data[:2 * index]
            try:
                return Text(part.decode("utf-16-le"))
            except UnicodeDecodeError:
                raise Problem("badIndex") from None
        known = {"stringByAppendingString:": 1, "hasPrefix:": 1, "hasSuffix:": 1,
                 "componentsSeparatedByString:": 1,
                 "stringByReplacingOccurrencesOfString:withString:": 2}
        if name not in known:
            return NotImplemented
        for argument in arguments:
            if argument is None:
                return False if name.startswith("has") else None
            if not isinstance(argument, Text):
                raise Problem("wrongKind")
        words = [argument.text for argument in arguments]
        if name == "stringByAppendingString:":
            return Text(text + words[0])
        if name == "hasPrefix:":
            return text.startswith(words[0])
        if name == "hasSuffix:":
            return text.endswith(words[0])
        if name == "componentsSeparatedByString:":
            return Array(Text(part) for part in (text.split(words[0]) if words[0] else [text]))
        return Text(text.replace(*words) if words[0] else text)

    def last_component(self, text):
        while len(text) > 1 and text.endswith("/"):
            text = text[:-1]
        return text if text == "/" else text.rsplit("/", 1)[-1]

    # --- functions
    def value_call(self, name, arguments):
        values = [self.value(argument) for argument in arguments]
        lower = name.lower().rstrip(":")
        if lower in INFIX:
            return arithmetic(INFIX[lower], *values)
        if lower in ("sum", "count", "min", "max", "average", "median", "mode", "stddev"):
            return self.statistic(lower, values)
        if lower.startswith("godwit."):
            return self.converter(lower[7:], values)
        if lower.startswith("bitwise") or lower in ("leftshift:by", "rightshift:by",
                                                    "onescomplement"):
            return self.bits(lower, values)
        first = values[0]
        if lower == "noindex":
            return first
        if first is None:
            return None
        if lower in ("uppercase", "lowercase", "length"):
            text = self.text(first)
            return self.text_message(text, lower if lower == "length" else lower + "String", [])
        if not is_number(first):
            raise Problem("wrongKind")
        try:
            if lower == "sqrt":
                return real(math.sqrt(to_float(first)))
            if lower == "ln":
                return real(math.log(to_float(first)))
            if lower == "log":
                return real(math.log10(to_float(first)))
            if lower == "exp":
                return real(math.exp(to_float(first)))
        except (ValueError, OverflowError):
            raise Problem("overflow") from None
        return self.rounded(lower, first)

    def rounded(self, name, value):
        if isinstance(value, Real):
            number = value.value
            if name == "abs":
                return Real(abs(number))
            change = {"floor": math.floor, "ceiling": math.ceil, "trunc": math.trunc}[name]
            return Real(math.copysign(float(change(number)), number))
        if isinstance(value, decimal.Decimal):
            if name == "abs":
                return abs(value)
            rule = {"floor": decimal.ROUND_FLOOR, "ceiling": decimal.ROUND_CEILING,
                    "trunc": decimal.ROUND_DOWN}[name]
            return value.to_integral_value(rule)
        return integer(abs(int(value))) if name == "abs" else int(value)

    def statistic(self, name, values):
        if len(values) == 1 and values[0] is None:
            values = []
        values = self.flat(values)
        if name == "count":
            return len(values)
        if name == "sum":
            return self.sum(values)
        if name == "average":
            return self.average(values)
        if name in ("min", "max"):
            return self.extreme(values, -1 if name == "min" else 1)
        if name == "stddev":
            numbers = [to_float(value) for value in self.numbers(values)]
            if not numbers:
                return None
            mean, squares = 0.0, 0.0
            for number in numbers:
                mean += number
            mean /= len(numbers)
            for number in numbers:
                squares += (number - mean) * (number - mean)
            if math.isinf(squares) or math.isnan(squares):
                raise Problem("overflow")
            return real(math.sqrt(squares / len(numbers)))
        ordered = self.sorted(values)
        if name == "mode":
            runs = []
            for value in ordered:
                if runs and same(runs[-1][0], value):
                    runs[-1][1] += 1
                else:
                    runs.append([value, 1])
            most = max((count for _, count in runs), default=0)
            return Array(value for value, count in runs if count == most)
        if not ordered:
            return None
        middle = len(ordered) // 2
        if len(ordered) % 2:
            return ordered[middle]
        return self.average(ordered[middle - 1:middle + 1])

    def bits(self, name, values):
        whole = []
        for value in values:
            if value is None:
                return None
            if not isinstance(value, (bool, int)):
                raise Problem("wrongKind")
            whole.append(int(value))
        if name == "onescomplement":
            return ~whole[0]
        a, b = whole
        if name == "bitwiseand:with":
            return a & b
        if name == "bitwiseor:with":
            return a | b
        if name == "bitwisexor:with":
            return a ^ b
        if not 0 <= b <= 63:
            raise Problem("overflow")
        if name == "rightshift:by":
            return a >> b
        return ((a << b) + 2**63) % 2**64 - 2**63

    def converter(self, name, values):
        if any(value is None for value in values):
            return None
        first = values[0]
        if name == "integer":
            if isinstance(first, Text):
                if not re.fullmatch(r"[-+]?[0-9]+", first.text):
                    raise Problem("notConvertible")
                return integer(int(first.text))
            if not is_number(first):
                raise Problem("wrongKind")
            return truncated(first)
        if name == "double":
            if isinstance(first, Text):
                if not PLAIN.fullmatch(first.text):
                    raise Problem("notConvertible")
                return real(float(first.text))
            if not is_number(first):
                raise Problem("wrongKind")
            return Real(to_float(first))
        if name == "seconds":
            if not isinstance(first, Date):
                raise Problem("wrongKind")
            return Real(first.seconds)
        if name == "date":
            if isinstance(first, Date):
                return first
            if not is_number(first):
                raise Problem("wrongKind")
            return Date(to_float(first))
        if name == "string" and len(values) == 1:
            text = self.description(first)
            if text is None:
                raise Problem("wrongKind")
            return Text(text)
        if name == "uuid":
            text = self.text(first)
            if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
                raise Problem("notConvertible")
            return Uuid(text.upper())
        encoding = self.text(values[1])
        if name == "data":
            text = self.text(first)
            if encoding == "utf8":
                return Data(text.encode())
            if encoding == "hex":
                if not re.fullmatch(r"([0-9a-fA-F]{2})*", text):
                    raise Problem("notConvertible")
                return Data(bytes.fromhex(text))
        if name in ("text", "string"):
            if not isinstance(first, Data):
                raise Problem("wrongKind")
            if encoding == "hex":
                return Text(first.data.hex())
            if encoding == "base64":
                return Text(base64.b64encode(first.data).decode())
            try:
                return Text(first.data.decode())
            except UnicodeDecodeError:
                raise Problem("notConvertible") from None
        raise Problem("unknownFunction")

    # --- predicates
    def holds(self, tree):
        kind = tree[0]
        if kind == "truth":
            return tree[1]
        if kind == "not":
            return not self.holds(tree[1])
        if kind == "and":
            return all(self.holds(part) for part in tree[1])
        if kind == "or":
            return any(self.holds(part) for part in tree[1])
        _, modifier, operator, options, left, right = tree
        x = self.value(left)
        y = self.value(right)
        if modifier is None:
            return self.compare(x, operator, options, y)
        members = [] if x is None else x.members if isinstance(x, Collection) else [x]
        while any(isinstance(member, Collection) for member in members):
            members = self.flat(members)
        test = any if modifier == "ANY" else all
        return test(self.compare(member, operator, options, y) for member in members)

    def compare(self, x, operator, options, y):
        if operator in ("==", "!="):
            return self.equal(x, y, options) == (operator == "==")
        if operator == "IN":
            return self.contains(y, x, options)
        if operator == "CONTAINS":
            return self.contains(x, y, options)
        if x is None or y is None:
            return False
        if operator == "BETWEEN":
            if not isinstance(y, Collection) or len(y.members) != 2:
                raise Problem("wrongKind")
            low, high = y.members
            if low is None or high is None:
                return False
            above, below = self.ordered(x, low, options), self.ordered(x, high, options)
            return above >= 0 and below <= 0
        if operator in ("<", "<=", ">", ">="):
            found = self.ordered(x, y, options)
            return {"<": found < 0, "<=": found <= 0, ">": found > 0, ">=": found >= 0}[operator]
        text, pattern = self.text(x), self.text(y)
        if operator == "MATCHES":
            flags = re.IGNORECASE if "c" in options else 0
            if "d" in options:
                text, pattern = fold(text, "d"), fold(pattern, "d")
            return re.fullmatch(pattern, text, flags) is not None
        text, pattern = fold(text, options), fold(pattern, options)
        if operator == "LIKE":
            return like(text, pattern)
        return text.startswith(pattern) if operator == "BEGINSWITH" else text.endswith(pattern)

    def equal(self, x, y, options):
        if options and isinstance(x, Text) and isinstance(y, Text):
            return fold(x.text, options) == fold(y.text, options)
        return same(x, y)

    def ordered(self, x, y, options):
        if options and isinstance(x, Text) and isinstance(y, Text):
            return self.order(Text(fold(x.text, options)), Text(fold(y.text, options)))
        return self.order(x, y)

    def contains(self, whole, part, options):
        if whole is None:
            return False
        if isinstance(whole, Collection):
            return any(self.equal(member, part, options) for member in whole.members)
        if isinstance(whole, Text):
            if part is None:
                return False
            return fold(self.text(part), options) in fold(whole.text, options)
        raise Problem("wrongKind")
