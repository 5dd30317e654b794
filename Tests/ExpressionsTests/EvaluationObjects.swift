import GodwitObjectModel

@testable import GodwitExpressions

/// SplitMix64: equal seeds, equal draws.
struct Seeded: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 0x1234_5678 }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }

  mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
  mutating func pick<T>(_ values: [T]) -> T { values[below(values.count)] }
  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
}

/// People, their company and their pets in memory.
final class EvaluationObjects: ObjectAccess {
  typealias Row = [String: ExpressionValue]

  private(set) var rows: [ObjectReference: Row] = [:]
  private(set) var order: [ObjectReference] = []
  /// What each mapping made of a source object.
  var associations: [String: [ObjectReference: [ObjectReference]]] = [:]
  var policies: [String: ([ExpressionValue]) -> ExpressionValue] = [:]
  var managerUserInfo: [String: ExpressionValue] = [:]

  @discardableResult
  func insert(_ entity: EntityName, _ key: Int64, _ row: Row) -> ObjectReference {
    let object = ObjectReference(entity, key, in: .source)
    if rows.updateValue(row, forKey: object) == nil { order.append(object) }
    return object
  }

  func value(forKey key: String, of object: ObjectReference) -> ExpressionValue? {
    rows[object]?[key]
  }

  func uri(of object: ObjectReference) -> String {
    "x-coredata://STORE/\(object.entity)/p\(object.primaryKey)"
  }

  func destinationInstances(
    forEntityMappingNamed mapping: String, sourceInstances: [ObjectReference]?
  ) -> [ObjectReference]? {
    associations[mapping].map { made in (sourceInstances ?? order).flatMap { made[$0] ?? [] } }
  }

  func destinationInstances(
    forSourceRelationshipNamed relationship: String, sourceInstances: [ObjectReference]?
  ) -> [ObjectReference]? {
    guard relationship != "unknown" else { return nil }
    return (sourceInstances ?? order).flatMap { object in
      associations.keys.sorted().flatMap { associations[$0]?[object] ?? [] }
    }
  }

  func sourceInstances(
    forEntityMappingNamed mapping: String, destinationInstances: [ObjectReference]?
  ) -> [ObjectReference]? {
    associations[mapping].map { made in
      order.filter { source in
        made[source]?.contains { destinationInstances?.contains($0) ?? true } ?? false
      }
    }
  }

  func sourceObjects(
    of entity: EntityName, where predicate: PredicateExpression,
    holds: (ObjectReference) throws -> Bool
  ) throws -> [ObjectReference]? {
    guard ["Person", "Company", "Pet"].contains(entity) else { return nil }
    return try order.filter { $0.entity == entity }.filter(holds)
  }

  func performPolicy(
    selector: String, arguments: [ExpressionValue], in scope: EvaluationScope
  ) -> ExpressionValue? {
    policies[selector]?(arguments)
  }
}

extension EvaluationObjects {
  static let words = [
    "", "a", "Anna", "anna", "ANNA", "Ünal", "e\u{301}clair", "éclair", "日本語", "👩‍👩‍👧 Mia", "x_1",
    "12", "-7.5", " 42 ", "1e3", "9999999999999999999", "YES", "a,b,,c", "/tmp/file.txt", "O'Neil",
    "line\nbreak", "\"q\" \\ s", "*", "?", "Ελένη", "naïve café",
    "E621E1F8-C36C-495A-93FC-0C247A3E6E5F",
  ]

  static let integers: [Int64] = [
    0, 1, -1, 2, 3, 7, 10, 42, -13, 1_000, 32_767, 65_536, 2_147_483_648, -2_147_483_649,
    9_007_199_254_740_993, .max, .min, .max - 1,
  ]

  static let reals: [Double] = [
    0, -0.0, 0.5, -1.5, 2, 0.1, 3.75, 100, 1e-7, 1e16, 123456.789, -2.5e9, 1e300,
    9_223_372_036_854_775_808, 9_007_199_254_740_992, .leastNonzeroMagnitude, .pi,
  ]

  static let decimals = [
    "0", "1", "-1", "0.1", "0.05", "19.99", "-3.333", "1234567890123456789",
    "99999999999999999999999999999999999999", "0.00000000000000000000000000000000000001", "1e50",
    "-2.5", "1000", "7e-40",
  ]

  /// A few of each, with nil, unicode and large numbers among the values.
  static func drawn(_ random: inout Seeded) -> EvaluationObjects {
    let objects = EvaluationObjects()
    let (people, companies, pets) = (3 + random.below(3), 2, 4)
    let token = UUIDBytes(text: words[words.count - 1]).map { ExpressionValue.uuid($0) } ?? .null
    func nothing(_ value: ExpressionValue, _ random: inout Seeded) -> ExpressionValue {
      random.chance(15) ? .null : value
    }
    func reference(_ entity: EntityName, _ count: Int, _ random: inout Seeded) -> ExpressionValue {
      .object(ObjectReference(entity, Int64(random.below(count)) + 1, in: .source))
    }
    func decimal(_ random: inout Seeded) -> ExpressionValue {
      .decimal(DecimalNumber(text: random.pick(decimals)) ?? .zero)
    }
    for key in 1...people {
      objects.insert(
        "Person", Int64(key),
        [
          "name": nothing(.string(random.pick(words)), &random),
          "nick": nothing(.string(random.pick(words)), &random),
          "age": nothing(.integer(Int64(random.below(90))), &random),
          "big": nothing(.integer(random.pick(integers)), &random),
          "score": nothing(.real(random.pick(reals)), &random),
          "price": nothing(decimal(&random), &random),
          "flag": nothing(.boolean(random.chance(50)), &random),
          "born": nothing(.date(random.pick([0, 86_400.5, -1e9, 6e8, 0.25])), &random),
          "photo": nothing(.data(Array(random.pick(words).utf8) + [0xFF]), &random),
          "note": nothing(.data(Array(random.pick(words).utf8)), &random),
          "token": nothing(token, &random),
          "site": nothing(.url("https://example.org/\(key)?q=1#f"), &random),
          "employer": nothing(reference("Company", companies, &random), &random),
          "friends": .set(
            of: (0..<random.below(4)).map { _ in reference("Person", people, &random) }),
          "pets": .orderedSet(
            of: (0..<random.below(5)).map { _ in reference("Pet", pets, &random) }),
          "nobody": .null, "none": .set([]),
        ])
    }
    for key in 1...companies {
      objects.insert(
        "Company", Int64(key),
        [
          "title": nothing(.string(random.pick(words)), &random),
          "revenue": nothing(.real(random.pick(reals)), &random),
          "staff": .set(
            of: (0..<random.below(4)).map { _ in reference("Person", people, &random) }),
        ])
    }
    for key in 1...pets {
      objects.insert(
        "Pet", Int64(key),
        [
          "kind": nothing(.string(random.pick(["cat", "Cat", "dog", "Köter"])), &random),
          "weight": nothing(.real(Double(random.below(400)) / 10), &random),
          "legs": nothing(.integer(Int64(random.below(6))), &random),
          "owner": nothing(reference("Person", people, &random), &random),
        ])
    }
    return objects
  }

}
