import GodwitKeyedArchive
import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitExpressions

private let anna = ObjectReference("Person", 1, in: .source)

/// Anna with a friend, a company and two pets.
private func objects() -> EvaluationObjects {
  let objects = EvaluationObjects()
  let bob = ObjectReference("Person", 2, in: .source)
  let cat = ObjectReference("Pet", 1, in: .source)
  let dog = ObjectReference("Pet", 2, in: .source)
  objects.insert(
    "Person", 1,
    [
      "name": .string("Anna"), "age": .integer(41), "half": .real(0.5), "nick": .null,
      "price": .decimal(DecimalNumber(text: "19.99") ?? .zero), "born": .date(86_400),
      "photo": .data([1, 2, 3]), "site": .url("https://example.org/a/b.txt?q#f"),
      "employer": .object(ObjectReference("Company", 1, in: .source)), "nobody": .null,
      "friends": .set([.object(bob)]), "pets": .orderedSet([.object(cat), .object(dog)]),
      "none": .set([]),
    ])
  objects.insert(
    "Person", 2, ["name": .string("Bob"), "age": .null, "pets": .orderedSet([.object(cat)])])
  objects.insert("Company", 1, ["title": .string("Éclair")])
  objects.insert("Pet", 1, ["kind": .string("cat"), "weight": .real(4)])
  objects.insert("Pet", 2, ["kind": .string("dog"), "weight": .null])
  objects.associations["PetToPet"] = [
    cat: [ObjectReference("Animal", 11, in: .destination)],
    dog: [ObjectReference("Animal", 12, in: .destination)],
  ]
  return objects
}

/// A message to the manager.
private func ask(_ selector: String, _ arguments: String) -> String {
  "FUNCTION($manager, '\(selector)', \(arguments))"
}

private func scope() -> EvaluationScope {
  EvaluationScope(
    source: anna, evaluatedObject: .object(anna), entityMapping: "PersonToPerson",
    entityMappingUserInfo: ["unit": "kg"], property: "result")
}

private func value(_ text: String, in surroundings: EvaluationObjects = objects()) throws
  -> ExpressionValue
{
  try Evaluator(access: surroundings, runDate: 7, seed: 3)
    .value(of: try ValueExpression(parsing: text), in: scope())
}

private func holds(_ text: String) throws -> Bool {
  try Evaluator(access: objects(), runDate: 7)
    .holds(try PredicateExpression(parsing: text), in: scope())
}

@Suite struct `An evaluation` {
  @Test(
    arguments: [
      ("1 / 2", .integer(0)),  // integers are cut
      ("-7 / 2", .integer(-3)), ("1.0 / 2", .real(0.5)),
      ("$source.age * 60", .integer(2460)),
      ("($source.half - 32.0) / 1.8", .real(-17.5)),
      ("$source.price * 2", .decimal(DecimalNumber(text: "39.98") ?? .zero)),
      (
        "$source.price / 3",
        .decimal(DecimalNumber(text: "6.6633333333333333333333333333333333333") ?? .zero)
      ),
      ("$source.nick + 1", .null),  // nil propagates
      ("max($source.nick)", .null), ("length($source.nick)", .null),
      ("count($source.nick)", .integer(0)), ("sum($source.nick)", .integer(0)),  // but not here
      ("mode($source.nick)", .array([])),
      ("FUNCTION('a', 'hasPrefix:', $source.nick)", .boolean(false)),
      ("2 ** 10", .integer(1024)), ("$source.name.length * 0.2", .real(0.8)),
      ("$source.employer.title.uppercaseString", .string("ÉCLAIR")),
      ("$source.nobody.name", .null), ("$source.site.absoluteString.length", .integer(31)),
      ("$source.site.host", .string("example.org")), ("$source.site.pathExtension", .string("txt")),
      ("$source.pets.@count", .integer(2)), ("$source.pets.@sum.weight", .real(4)),
      ("$source.pets.@avg.weight", .real(2)),  // nil counts as 0
      ("$source.pets.@max.weight", .real(4)), ("$source.none.@max.weight", .null),
      ("$source.pets.kind", .orderedSet([.string("cat"), .string("dog")])),
      ("$source.friends.@distinctUnionOfSets.pets.kind", .set([.string("cat")])),
      ("$source.pets[LAST].kind", .string("dog")), ("$source.none[FIRST]", .null),
      ("SUBQUERY($source.pets, $p, $p.weight != nil).@count", .integer(1)),
      ("CAST(CAST($source.born, 'NSNumber') + 3600, 'NSDate')", .date(90_000)),
      ("now()", .date(7)), ("median({3, 1, 2, 10})", .real(2.5)),
      ("mode({2, 1, 2})", .array([.integer(2)])), ("mode({})", .array([])),
      ("mode({2, 3, 1, 2, 1, nil})", .array([.integer(1), .integer(2)])),
      ("mode({3, 3, 1})[0]", .integer(3)), ("mode({2, 2, 1, 1}).@max.self", .integer(2)),
      ("TERNARY($source.age >= 18, 'adult', 'child')", .string("adult")),
      ("FUNCTION($source.name, 'stringByAppendingString:', ' B.')", .string("Anna B.")),
      ("FUNCTION($source.name, 'substringFromIndex:', 2)", .string("na")),
      ("FUNCTION($source.pets.kind, 'componentsJoinedByString:', '+')", .string("cat+dog")),
      ("FUNCTION($source, 'valueForKeyPath:', 'pets.@count')", .integer(2)),
      ("FUNCTION($source, 'objectID').absoluteString", .string("x-coredata://STORE/Person/p1")),
      ("$entityMapping.userInfo.unit", .string("kg")), ("$propertyMapping.name", .string("result")),
      (
        "FETCH(\(ask("fetchRequestForSourceEntityNamed:predicateString:", "'Pet', 'weight > 1'")), "
          + "$manager.sourceContext, YES)",
        .integer(1)
      ),
      (
        ask(ManagerSelector.instancesForMapping, "'PetToPet', $source.pets"),
        .array([
          .object(ObjectReference("Animal", 11, in: .destination)),
          .object(ObjectReference("Animal", 12, in: .destination)),
        ])
      ),
      // An empty to-one asks for none, not for all.
      (
        ask(ManagerSelector.instancesForMapping, "'PetToPet', $source.nobody"),
        .array([])
      ),
      ("godwit.integer('42') + 1", .integer(43)), ("godwit.string(41)", .string("41")),
      ("godwit.date('2001-01-02', 'yyyy-MM-dd')", .date(86_400)),
      ("godwit.string($source.born, 'dd.MM.yyyy HH:mm')", .string("02.01.2001 00:00")),
      ("godwit.timestamp($source.born)", .real(86_400)), ("godwit.date(5)", .date(5)),
      (
        "godwit.string(godwit.uuid('e621e1f8-c36c-495a-93fc-0c247a3e6e5f'))",
        .string("E621E1F8-C36C-495A-93FC-0C247A3E6E5F")
      ),
      ("godwit.string($source.photo, 'hex')", .string("010203")),
      ("godwit.string(godwit.data('aé', 'utf8'), 'base64')", .string("YcOp")),
      ("$source.born.description", .string("2001-01-02 00:00:00 +0000")),
      // Behind parentheses stands what is asked of the result.
      ("({1.5, 1.5, 1.5}.@sum.self).intValue", .integer(4)),
      ("{1.5, 1.5, 1.5}.@sum.self.intValue", .integer(3)),
      ("({9, 10}.@max.self).stringValue", .string("10")),
      ("($source.friends.@distinctUnionOfSets.pets.kind).@count", .integer(1)),
      ("CAST('https://e.com/a/?q=a%26b%3D1#x%2520y', 'NSURL').query", .string("q=a%26b%3D1")),
      ("CAST('https://e.com/a/?q=a%26b%3D1#x%2520y', 'NSURL').fragment", .string("x%2520y")),
      ("CAST('https://e.com/a%20b/?q', 'NSURL').path", .string("/a b")),
      // As NSURL has it: without brackets.
      ("CAST('https://[2001:db8::1]:8080/x', 'NSURL').host", .string("2001:db8::1")),
      ("CAST('https://[fe80::1%25en0]/', 'NSURL').host", .string("fe80::1%en0")),
      ("CAST('mailto:a@b.c', 'NSURL').host", .null),
      ("CAST('http://e.com/a b', 'NSURL').absoluteString", .string("http://e.com/a%20b")),
      ("godwit.url('<none>').absoluteString", .string("%3Cnone%3E")),
      // The first is `NSDate.distantPast`; between the others lies the change of calendars.
      ("CAST(CAST(-63114076800, 'NSDate'), 'NSString')", .string("0001-01-01 00:00:00 +0000")),
      ("godwit.string(CAST(-13197600001, 'NSDate'))", .string("1582-10-04 23:59:59 +0000")),
      ("godwit.string(CAST(-13197600000, 'NSDate'))", .string("1582-10-15 00:00:00 +0000")),
      ("CAST('https://e.com/', 'NSURL').path", .string("/")),
      ("CAST('mailto:a@b.c', 'NSURL').path", .null),
      (
        "FUNCTION('/birds', 'stringByAppendingPathComponent:', '/limosa')", .string("/birds/limosa")
      ),
      (
        "FUNCTION('/birds/', 'stringByAppendingPathComponent:', 'limosa/')",
        .string("/birds/limosa")
      ),
      ("FUNCTION('/birds', 'stringByAppendingPathComponent:', '')", .string("/birds")),
      ("FUNCTION('/', 'stringByAppendingPathComponent:', 'limosa')", .string("/limosa")),
      ("FUNCTION('', 'stringByAppendingPathComponent:', 'limosa')", .string("limosa")),
      ("FUNCTION($propertyMapping, 'name')", .string("result")),
      (
        "$source.objectID.URIRepresentation.absoluteString", .string("x-coredata://STORE/Person/p1")
      ),
      ("FUNCTION($source.pets.kind, 'containsObject:', 'dog')", .boolean(true)),
    ] as [(String, ExpressionValue)])
  func `gives`(text: String, expected: ExpressionValue) throws {
    #expect(try value(text) == expected)
  }

  @Test func `takes a property before what every object has, whatever its name`() throws {
    let surroundings = objects()
    #expect(try value("$source.self.name", in: surroundings) == .string("Anna"))
    surroundings.insert("Person", 1, ["self": .boolean(true), "entity": .integer(3)])
    for (question, expected) in [
      ("$source.self", ExpressionValue.boolean(true)), ("$source.entity", .integer(3)),
      ("FUNCTION($source, 'valueForKey:', 'self')", .boolean(true)),
    ] { #expect(try value(question, in: surroundings) == expected) }
  }

  @Test(arguments: [
    ("1 / 0", EvaluationProblem.divisionByZero), ("1.5 / 0", .divisionByZero),
    (
      "FETCH(\(ask("fetchRequestForSourceEntityNamed:predicateString:", "'Pet', 'TRUEPREDICATE'")), "
        + "FUNCTION($manager, 'destinationContext'), YES)",
      .wrongKind(found: "$manager.destinationContext", needed: "$manager.sourceContext")
    ),
    ("9223372036854775807 + 1", .overflow), ("1e308 * 10", .overflow), ("sqrt(-1)", .overflow),
    ("godwit.decimal(1e165)", .overflow), ("godwit.decimal(1e-130)", .overflow),
    ("godwit.decimal('1.5e-128')", .overflow), ("$source.price * 1e-130", .overflow),
    ("CAST(1.2345678901234567e-125, 'NSDecimalNumber')", .overflow),
    ("CAST('1e-129', 'NSDecimalNumber')", .overflow), ("$source.price * 1e-127", .overflow),
    ("godwit.decimal('1e-100') / 3", .overflow), ("godwit.decimal('1e-100') ** 2", .overflow),
    ("$source.nam", .unknownKey(owner: "the source entity Person", key: "nam")),
    ("$source.name + 1", .wrongKind(found: "a text", needed: "a number")),
    ("$source.born + 1", .wrongKind(found: "a date", needed: "a number")),
    ("$source.name.@count", .wrongKind(found: "a text", needed: "a collection")),
    (
      "FUNCTION($source, 'valueForKey:', $source.name)",
      .unknownKey(
        owner: "the source entity Person", key: "Anna")
    ),
    (ask(ManagerSelector.instancesForMapping, "$source.name, $source"), .unknownMapping("Anna")),
    ("$source.pets[7]", .badIndex), ("$destination.x", .unknownVariable("destination")),
    ("CAST($source.age, 'NSFoo')", .unknownCast("NSFoo")),
    ("FUNCTION($source.name, 'explode')", .unknownSelector(owner: "a text", selector: "explode")),
    ("FUNCTION($source.name, 'hasPrefix:')", .argumentCount("hasPrefix:")),
    ("FUNCTION($entityPolicy, 'make:', 1)", .missingPolicy(selector: "make:")),
    (
      ask(ManagerSelector.instancesForMapping, "'No', $source"),
      .unknownMapping("No")
    ),
    ("godwit.integer('4x')", .notConvertible(to: "a whole number")),
    ("godwit.date('31.02.2001', 'dd.MM.yyyy')", .notConvertible(to: "a date of this format")),
    (
      "godwit.bucket($source.photo, 'a')",
      .damagedPropertyList(reason: "it is neither a binary nor an XML property list")
    ),
    ("TERNARY($source.name MATCHES '[', 1, 2)", .badPattern(what: "regular expression")),
    ("TERNARY($source.name < 3, 1, 2)", .notComparable("a text", "a number")),
  ])
  func `fails with its place and without data`(text: String, problem: EvaluationProblem) {
    let error = #expect(throws: EvaluationError.self) { try value(text) }
    #expect(error?.problem == problem)
    #expect(error?.entity == "Person" && error?.primaryKey == 1 && error?.property == "result")
    #expect(error?.description.contains("Anna") == false)
  }

  @Test(arguments: [
    ("nick == nil", true), ("nick != nil", false), ("age != nil", true), ("nick < 'z'", false),
    ("nick LIKE '*'", false), ("age == 41.0", true), ("name == 'anna'", false),
    ("name ==[c] 'anna'", true), ("employer.title ==[cd] 'eclair'", true),
    ("employer.title BEGINSWITH[d] 'E'", true), ("employer.title BEGINSWITH 'E'", false),
    ("name LIKE 'A?n*'", true), ("name LIKE 'A?'", false), ("name MATCHES 'An'", false),
    ("name MATCHES '[A-H].*'", true), ("name MATCHES 'A|Anna'", true), ("name CONTAINS 'nn'", true),
    ("age BETWEEN {41, 50}", true), ("age BETWEEN {42, 50}", false), ("age IN {1, 41}", true),
    ("name IN 'x Anna y'", true), ("nick IN {'a', NULL}", true), ("pets.kind CONTAINS 'cat'", true),
    ("ANY pets.weight > 3", true), ("ALL pets.weight > 3", true), ("ALL pets.weight > 4", false),
    ("NONE pets.weight > 9", true),
    ("ALL #none.weight > 3", true), ("ANY #none.weight > 3", false),
    ("ANY friends.pets.kind == 'cat'", true),  // through two to-manys
    ("9007199254740993 == 9007199254740992.0", false),  // exact beyond the doubles
    ("age > 40 AND NOT (age > 41) OR FALSEPREDICATE", true),
  ])
  func `of predicates follows the rules of nil, options and collections`(
    text: String, expected: Bool
  ) throws {
    #expect(try holds(text) == expected)
  }

  @Test func `asks the policy's methods`() throws {
    let surroundings = objects()
    surroundings.policies["double:"] = { arguments in
      if case .integer(let value)? = arguments.first { .integer(value * 2) } else { .null }
    }
    #expect(
      try value("FUNCTION($entityPolicy, 'double:', $source.age)", in: surroundings) == .integer(82)
    )
  }

  @Test func `draws the same random numbers for a row again, and others for another`() throws {
    let first = try value("random()")
    #expect(try value("random()") == first)
    guard case .integer(0..<(1 << 31)) = first else {
      Issue.record("\(first) is no whole number that every Integer 32 takes")
      return
    }
    let both = try value("{random(), random()}").members
    #expect(both?[0] != both?[1])
    let expression = try ValueExpression(parsing: "random(1000000)")
    let other = EvaluationScope(
      source: ObjectReference("Person", 2, in: .source), property: "result")
    let evaluator = Evaluator(access: objects(), runDate: 0)
    #expect(
      try evaluator.value(of: expression, in: scope())
        != evaluator.value(of: expression, in: other))
  }

  @Test(arguments: [true, false])
  func `takes properties out of a bucket and puts them back`(isBinary: Bool) throws {
    let list = PropertyList.dictionary(["extendedName": .string("Anna B."), "n": .integer(3)])
    let xml =
      "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>extendedName</key>"
      + "<string>Anna B.</string><key>n</key><integer>3</integer></dict></plist>"
    let surroundings = objects()
    surroundings.insert(
      "Person", 1, ["bucket": .data(isBinary ? list.binary() : Array(xml.utf8)), "empty": .null])
    #expect(
      try value("godwit.bucket($source.bucket, 'extendedName')", in: surroundings)
        == .string("Anna B."))
    #expect(try value("godwit.bucket($source.bucket, 'other')", in: surroundings).isNull)
    #expect(try value("godwit.bucket($source.empty, 'other')", in: surroundings).isNull)
    #expect(
      try value(
        "godwit.bucket(godwit.bucketSetting($source.bucket, 'n', 4), 'n') + 1", in: surroundings)
        == .integer(5))
    #expect(
      try value(
        "godwit.bucket(godwit.bucketSetting($source.empty, 'x', 'y'), 'x')", in: surroundings)
        == .string("y"))
    #expect(
      try value(
        "godwit.bucket(godwit.bucketSetting($source.bucket, 'n', NULL), 'n')", in: surroundings
      ).isNull)
  }

  @Test(arguments: [
    // As an application wrote it.
    "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>extendedName</key>"
      + "<string>Anna B.</string><key>n</key><string>3</string></dict></plist>",
    // The description of a dictionary.
    "{\n    extendedName = \"Anna B.\";\n    n = 3;\n}",
  ])
  func `takes properties out of a bucket in a text`(text: String) throws {
    let surroundings = objects()
    surroundings.insert("Person", 1, ["bucket": .string(text)])
    #expect(
      try value("godwit.bucket($source.bucket, 'extendedName')", in: surroundings)
        == .string("Anna B."))
    #expect(
      try value("godwit.integer(godwit.bucket($source.bucket, 'n'))", in: surroundings)
        == .integer(3))
    let set = "godwit.bucketSetting($source.bucket, 'x', 'é & <y>')"
    guard case .string(let written) = try value(set, in: surroundings) else {
      Issue.record("a text becomes something else")
      return
    }
    #expect(written.hasPrefix("<?xml"))
    #expect(try value("godwit.bucket(\(set), 'x')", in: surroundings) == .string("é & <y>"))
    #expect(try value("godwit.bucket(\(set), 'n')", in: surroundings) == .string("3"))
  }

  @Test func `refuses a text whose description of data is no property list`() throws {
    let surroundings = objects()
    surroundings.insert(
      "Person", 1, ["bucket": .string("{ badge = {length = 2, bytes = 0x0102}; }")])
    let error = #expect(throws: EvaluationError.self) {
      try value("godwit.bucket($source.bucket, 'badge')", in: surroundings)
    }
    guard case .damagedPropertyList = error?.problem else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test func `ends a text that doubles without end`() throws {
    var text = "$x := 'aaaaaaaaaaaaaaaa'"
    for _ in 0..<30 { text = "$x := FUNCTION(\(text), 'stringByAppendingString:', $x)" }
    let error = #expect(throws: EvaluationError.self) { try value(text) }
    #expect(error?.problem == .tooLarge(what: "bytes of text", limit: EvaluationLimits.bytes))
  }

  @Test(arguments: ["{$x}", "{$x, $x}"])
  func `ends a variable that is put into itself without end`(step: String) throws {
    let steps = [String](repeating: "$x := \(step)", count: 2_000).joined(separator: ", ")
    #expect(throws: EvaluationError.self) { try value("{$x := 1, \(steps)}[LAST]") }
  }

  @Test(arguments: [("(a+)+b", 60), ("(a|b)*", 1_000_000)])
  func `ends a regular expression that goes back without end`(pattern: String, length: Int) throws {
    let surroundings = objects()
    surroundings.insert("Person", 1, ["name": .string(String(repeating: "a", count: length) + "!")])
    let error = #expect(throws: EvaluationError.self) {
      try value("TERNARY($source.name MATCHES '\(pattern)', 1, 2)", in: surroundings)
    }
    guard case .tooLarge = error?.problem else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test func `of any tree at all ends with a value or a typed error`() throws {
    var draw = ExpressionDraw(seed: 5)
    let surroundings = objects()
    let evaluator = Evaluator(access: surroundings, runDate: 0)
    var failures = 0
    for _ in 0..<5_000 {
      let tree = draw.value(depth: 6)
      do {
        _ = try evaluator.value(of: tree, in: scope())
      } catch {
        #expect(error is EvaluationError, "\(tree)")
        failures += 1
      }
    }
    #expect(failures > 0)
  }

  @Test func `refuses a tree that is too deep instead of filling the stack`() throws {
    var tree = ValueExpression.constant(.integer(1))
    for _ in 0..<1_000 { tree = .call("abs:", [tree]) }
    let operators = [KeyPathElement](
      repeating: .collectionOperator("unionOfObjects"), count: 20_000)
    var nested = ValueExpression.aggregate([])
    for _ in 0..<500 { nested = .aggregate([nested]) }
    for deep in [tree, nested, .keyPath(base: .aggregate([.variable("source")]), keys: operators)] {
      var evaluation = Evaluation(Evaluator(access: objects(), runDate: 0), scope())
      #expect(throws: EvaluationProblem.self) { try evaluation.value(deep) }
    }
  }
}

@Suite struct `A decimal number` {
  /// Amounts of every number of digits, and any bits at all.
  @Test
  func `is a whole number of 64 bits as it is, else the shortest that reads back as the double`()
    throws
  {
    var random = Seeded(seed: 61)
    var places = [1.0]
    for _ in 0..<24 { places.append(places[places.count - 1] * 10) }
    for number in 0..<60_000 {
      let digits = Double(random.next() >> UInt64(random.below(60)))
      let real: Double =
        switch number % 4 {
        case 0: digits / places[random.below(25)]
        case 1: -(digits / places[random.below(25)]).nextUp
        case 2: digits * places[random.below(25)]
        default: Double(bitPattern: random.next())
        }
      guard real.isFinite, abs(real) < 1e120 else { continue }
      let found = DecimalNumber(real: real)
      let whole = Int64(exactly: real).map { DecimalNumber($0) }
      #expect(found == whole ?? DecimalNumber(text: real.description), "\(real)")
      guard let found else { continue }
      let text = "\(found.isNegative ? "-" : "")\(found.mantissa)e\(found.exponent)"
      #expect(found.double == Double(text), "\(text)")
    }
  }

  @Test(arguments: [
    ("0.1 + 0.2", "0.3"), ("1 / 3", "0." + String(repeating: "3", count: 38)),
    ("2 / 3", "0." + String(repeating: "6", count: 37) + "7"),
    ("99999999999999999999999999999999999999 + 1", "1" + String(repeating: "0", count: 38)),
    ("99999999999999999999999999999999999999 + 0.5", "1" + String(repeating: "0", count: 38)),
    ("1e38 - 1e-38", "1" + String(repeating: "0", count: 38)),
    ("1e37 - 1", String(repeating: "9", count: 37)),
    ("12345678901234567890 * 98765432109876543210", "1219326311370217952237463801111263526900"),
    ("1 - 1", "0"), ("0 / 7", "0"), ("-1 / 8", "-0.125"),
    ("7.5 % 2", "1.5"), ("-7.5 % 2", "-1.5"), ("7.5 % -2", "1.5"), ("-4 % 2", "0"),
    ("1e-128 + 0", "0." + String(repeating: "0", count: 127) + "1"), ("1e-128 - 1e-128", "0"),
    ("1e-100 / 1e28", "0." + String(repeating: "0", count: 127) + "1"),
    ("0e-400 * 1e-100", "0"), ("5 % 1e50", "5"), ("1e38 % 7", "2"), ("1e100 % 7", "4"),
    ("99999999999999999999999999999999999999 % 1e37", String(repeating: "9", count: 37)),
  ])
  func `reckons with 38 digits`(text: String, expected: String) throws {
    let parts = text.split(separator: " ").map(String.init)
    let a = try #require(DecimalNumber(text: parts[0]))
    let b = try #require(DecimalNumber(text: parts[2]))
    let result =
      switch parts[1] {
      case "+": a.adding(b)
      case "-": a.subtracting(b)
      case "*": a.multiplied(by: b)
      case "%": a.remainder(dividingBy: b)
      default: a.divided(by: b)
      }
    #expect(result?.description == expected)
  }

  @Test func `ends at its exponents`() throws {
    let large = try #require(DecimalNumber(text: "1e127"))
    #expect(large.multiplied(by: large) == nil)
    let small = try #require(DecimalNumber(text: "1e-100"))
    #expect(small.multiplied(by: small) == nil)
    // Nor is the quotient rounded to fewer digits than others are.
    #expect(small.divided(by: DecimalNumber(3)) == nil)
    #expect(DecimalNumber(text: "1e400") == nil)
    #expect(DecimalNumber(text: "1e-129") == nil)
    #expect(DecimalNumber(text: "12.5e-128") == nil)
    #expect(DecimalNumber(text: "10e-129") == DecimalNumber(text: "1e-128"))
    #expect(
      DecimalNumber(text: "1e164")?.mantissa == 10_000_000_000_000_000_000_000_000_000_000_000_000)
    #expect(DecimalNumber(text: "1e165") == nil)
  }

  @Test(arguments: [
    (1e-128, "1e-128"), (-1.5e-127, "-15e-128"), (1.5e-128, nil), (1e-130, nil), (-1e-300, nil),
    (1.2345678901234567e-125, nil), (1.234e-125, "1234e-128"), (1e164, "1e164"), (1e165, nil),
    (-0.0, "0e0"),
  ])
  func `is no double that it cannot hold`(real: Double, expected: String?) {
    let found = DecimalNumber(real: real)
    #expect(found?.double == expected.flatMap(Double.init))
  }
}
