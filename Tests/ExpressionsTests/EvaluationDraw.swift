@testable import GodwitExpressions

/// Draws expressions about ``EvaluationObjects`` that mostly have a value: kinds fit, except that
/// now and then one is swapped for another.
struct EvaluationDraw {
  var random: Seeded

  enum Kind: CaseIterable {
    case number, text, date, boolean, object, objects, numbers, texts, data
  }

  init(seed: UInt64) { random = Seeded(seed: seed) }

  mutating func expression() -> ValueExpression {
    any(random.pick(Kind.allCases), depth: 1 + random.below(4))
  }

  private mutating func path(_ base: ValueExpression, _ keys: String...) -> ValueExpression {
    .keyPath(
      base: base,
      keys: keys.map { $0.hasPrefix("@") ? .collectionOperator(String($0.dropFirst())) : .key($0) })
  }

  private var source: ValueExpression { .variable("source") }

  /// One in thirty is of another kind than it should be.
  private mutating func any(_ kind: Kind, depth: Int) -> ValueExpression {
    let kind = random.below(30) == 0 ? random.pick(Kind.allCases) : kind
    if random.below(25) == 0 { return .constant(.null) }
    switch kind {
    case .number: return number(depth)
    case .text: return text(depth)
    case .date: return date(depth)
    case .boolean:
      return depth > 0
        ? .ternary(
          predicate(depth - 1), then: .constant(.boolean(true)),
          otherwise: .constant(.boolean(false)))
        : path(source, "flag")
    case .object: return object(depth)
    case .objects: return objects(depth)
    case .numbers: return numbers(depth)
    case .texts: return texts(depth)
    case .data:
      return random.chance(30) && depth > 0
        ? .call(
          "godwit.data",
          [any(.text, depth: depth - 1), .constant(.string(random.pick(["utf8", "hex"])))])
        : path(source, random.pick(["photo", "note"]))
    }
  }

  // MARK: - Single values

  private mutating func number(_ depth: Int) -> ValueExpression {
    guard depth > 0, !random.chance(15) else {
      switch random.below(4) {
      case 0: return .constant(.integer(random.pick(EvaluationObjects.integers)))
      case 1: return .constant(.real(random.pick(EvaluationObjects.reals)))
      case 2: return path(object(0), random.pick(["age", "flag"]))
      default: return path(object(0), random.pick(["age", "big", "score", "price"]))
      }
    }
    let next = depth - 1
    switch random.below(16) {
    case 0, 1, 2, 3:
      return .call(
        random.pick([
          BuiltInFunction.Infix.add, BuiltInFunction.Infix.subtract,
          BuiltInFunction.Infix.multiply, BuiltInFunction.Infix.divide, "modulus:by:",
        ]), [any(.number, depth: next), any(.number, depth: next)])
    case 4:
      return .call(
        BuiltInFunction.Infix.power,
        [any(.number, depth: next), .constant(.integer(random.pick([0, 1, 2, 3, 5, 10, 63])))])
    case 5:
      return .call(
        random.pick(["sqrt:", "abs:", "floor:", "ceiling:", "trunc:", "ln:", "log:", "exp:"]),
        [any(.number, depth: next)])
    case 6:
      return .call(
        random.pick(["sum:", "count:", "min:", "max:", "average:", "median:", "stddev:"]),
        [any(.numbers, depth: next)])
    case 7:
      return .keyPath(
        base: any(.objects, depth: next),
        keys: [
          .collectionOperator(random.pick(["sum", "avg", "min", "max"])),
          .key(random.pick(["age", "score", "price", "weight", "legs"])),
        ])
    case 8: return path(any(random.pick([.objects, .numbers, .texts]), depth: next), "@count")
    case 9:
      return path(
        any(.text, depth: next),
        random.pick(["length", "intValue", "integerValue", "doubleValue", "boolValue"]))
    case 10:
      return .cast(
        any(random.pick([.date, .number, .text]), depth: next),
        type: random.pick(["NSNumber", "NSDecimalNumber"]))
    case 11:
      return .ternary(
        predicate(next), then: any(.number, depth: next), otherwise: any(.number, depth: next))
    case 12:
      return .call(
        random.pick([
          "bitwiseAnd:with:", "bitwiseOr:with:", "bitwiseXor:with:", "leftshift:by:",
          "rightshift:by:",
        ]),
        [path(source, "big"), .constant(.integer(random.pick([0, 1, 5, 63, 64, 255])))])
    case 13:
      return .element(
        of: any(.numbers, depth: next),
        at: random.pick([.first, .last, .size, .index(.constant(.integer(Int64(random.below(3)))))])
      )
    case 14:
      return .call(
        random.pick(["godwit.integer", "godwit.double"]),
        [any(random.pick([.text, .number]), depth: next)])
    default:
      return path(
        any(.number, depth: next),
        random.pick(["integerValue", "doubleValue", "floatValue", "intValue"]))
    }
  }

  private mutating func text(_ depth: Int) -> ValueExpression {
    guard depth > 0, !random.chance(20) else {
      return random.chance(40)
        ? .constant(.string(random.pick(EvaluationObjects.words)))
        : random.chance(20)
          ? path(path(source, "employer"), "title")
          : path(object(0), random.pick(["name", "nick"]))
    }
    let next = depth - 1
    switch random.below(10) {
    case 0:
      return .function(
        receiver: any(.text, depth: next), selector: "stringByAppendingString:",
        arguments: [any(.text, depth: next)])
    case 1:
      return .function(
        receiver: any(.text, depth: next),
        selector: "stringByReplacingOccurrencesOfString:withString:",
        arguments: [any(.text, depth: 0), any(.text, depth: 0)])
    case 2:
      return .function(
        receiver: any(.text, depth: next),
        selector: random.pick(["substringFromIndex:", "substringToIndex:"]),
        arguments: [.constant(.integer(Int64(random.below(4))))])
    case 3:
      return path(
        any(.text, depth: next),
        random.pick([
          "uppercaseString", "lowercaseString", "lastPathComponent", "pathExtension", "description",
        ]))
    case 4: return .call(random.pick(["uppercase:", "lowercase:"]), [any(.text, depth: next)])
    case 5: return path(any(.number, depth: next), "stringValue")
    case 6: return .cast(any(random.pick([.number, .text]), depth: next), type: "NSString")
    case 7:
      return .ternary(
        predicate(next), then: any(.text, depth: next), otherwise: any(.text, depth: next))
    case 8:
      return .function(
        receiver: any(random.pick([.texts, .numbers]), depth: next),
        selector: "componentsJoinedByString:",
        arguments: [.constant(.string(random.pick(["", ", ", "é"])))])
    default:
      return random.chance(50)
        ? .call("godwit.string", [any(.number, depth: next)])
        : .call(
          "godwit.text",
          [any(.data, depth: next), .constant(.string(random.pick(["utf8", "hex", "base64"])))])
    }
  }

  private mutating func date(_ depth: Int) -> ValueExpression {
    guard depth > 0 else { return path(object(0), "born") }
    switch random.below(4) {
    case 0: return .cast(any(.number, depth: depth - 1), type: "NSDate")
    case 1:
      return .function(
        receiver: any(.date, depth: depth - 1), selector: "dateByAddingTimeInterval:",
        arguments: [any(.number, depth: depth - 1)])
    case 2: return .call("godwit.date", [any(.number, depth: depth - 1)])
    default: return path(object(0), "born")
    }
  }

  private mutating func object(_ depth: Int) -> ValueExpression {
    guard depth > 0, random.chance(50) else { return source }
    return .element(of: any(.objects, depth: depth - 1), at: random.pick([.first, .last]))
  }

  // MARK: - Collections

  private mutating func objects(_ depth: Int) -> ValueExpression {
    guard depth > 0 else {
      return path(source, random.pick(["friends", "friends", "pets", "none"]))
    }
    switch random.below(6) {
    case 0: return .keyPath(base: source, keys: [.key("employer"), .key("staff")])
    case 1:
      return .subquery(
        collection: path(source, "friends"), variable: "x",
        predicate: .comparison(
          Comparison(
            .keyPath(base: .variable("x"), keys: [.key("age")]),
            random.pick([.less, .greater, .notEqual, .equal]), any(.number, depth: depth - 1))))
    case 2:
      return .keyPath(
        base: source,
        keys: [
          .key("friends"),
          .collectionOperator(
            random.pick(["distinctUnionOfSets", "unionOfSets", "distinctUnionOfArrays"])),
          .key("pets"),
        ])
    case 3:
      return .function(
        receiver: any(.objects, depth: depth - 1), selector: "allObjects", arguments: [])
    default: return path(source, random.pick(["friends", "pets"]))
    }
  }

  private mutating func numbers(_ depth: Int) -> ValueExpression {
    switch random.below(5) {
    case 0:
      return .aggregate((0..<random.below(5)).map { _ in any(.number, depth: max(0, depth - 1)) })
    case 1:
      return .keyPath(
        base: any(.objects, depth: max(0, depth - 1)),
        keys: [
          .collectionOperator(random.pick(["unionOfObjects", "distinctUnionOfObjects"])),
          .key(random.pick(["age", "score", "legs"])),
        ])
    case 2 where depth > 0: return .call("mode:", [any(.numbers, depth: depth - 1)])
    default:
      return path(path(source, "friends"), random.pick(["age", "score", "price", "big"]))
    }
  }

  private mutating func texts(_ depth: Int) -> ValueExpression {
    switch random.below(4) {
    case 0:
      return .aggregate((0..<random.below(4)).map { _ in any(.text, depth: max(0, depth - 1)) })
    case 1:
      return .function(
        receiver: any(.text, depth: max(0, depth - 1)), selector: "componentsSeparatedByString:",
        arguments: [.constant(.string(random.pick([",", "a", "", " "])))])
    case 2: return path(path(source, "pets"), "kind")
    default: return path(path(source, "friends"), random.pick(["name", "nick"]))
    }
  }

  // MARK: - Predicates

  mutating func predicate(_ depth: Int) -> PredicateExpression {
    guard depth > 0 else { return comparison(0) }
    switch random.below(8) {
    case 0: return .and([predicate(depth - 1), predicate(depth - 1)])
    case 1: return .or([predicate(depth - 1), predicate(depth - 1), predicate(0)])
    case 2: return .not(predicate(depth - 1))
    case 3: return .constant(random.chance(50))
    default: return comparison(depth - 1)
    }
  }

  private mutating func comparison(_ depth: Int) -> PredicateExpression {
    let options: [Comparison.Options] = [
      [], [], .caseInsensitive, .diacriticInsensitive, [.caseInsensitive, .diacriticInsensitive],
      .normalized,
    ]
    let orders: [Comparison.Operator] = [
      .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual,
    ]
    switch random.below(8) {
    case 0, 1:
      let kind = random.pick([Kind.number, .number, .date, .text])
      return .comparison(
        Comparison(
          any(kind, depth: depth), random.pick(orders), any(kind, depth: depth),
          options: kind == .text ? random.pick(options) : []))
    case 2:
      return .comparison(
        Comparison(
          any(.text, depth: depth), random.pick([.contains, .beginsWith, .endsWith]),
          any(.text, depth: 0), options: random.pick(options)))
    case 3:
      return .comparison(
        Comparison(
          any(.text, depth: depth), .like,
          .constant(.string(random.pick(["*", "a*", "?nna", "*é*", "\\*", "*n?", "", "A*A"]))),
          options: random.pick(options)))
    case 4:
      return .comparison(
        Comparison(
          any(.text, depth: depth), .matches,
          .constant(
            .string(random.pick(["[a-hA-H].*", "\\d+", ".+", "(a|an)+.*", "^.{2,4}$", "anna"]))),
          options: random.pick([[], .caseInsensitive])))
    case 5:
      return .comparison(
        Comparison(
          any(.number, depth: depth), .between,
          .aggregate([any(.number, depth: 0), any(.number, depth: 0)])))
    case 6:
      return random.chance(50)
        ? .comparison(Comparison(any(.number, depth: depth), .in, any(.numbers, depth: depth)))
        : .comparison(
          Comparison(
            any(.text, depth: depth), .in, any(random.pick([.texts, .text]), depth: depth),
            options: random.pick(options)))
    default:
      return .comparison(
        Comparison(
          path(path(source, "friends"), random.pick(["age", "score"])), random.pick(orders),
          any(.number, depth: depth), modifier: random.pick([.any, .all])))
    }
  }
}
