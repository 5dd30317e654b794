public import GodwitObjectModel

/// An object of the source or of the destination store: a key, not its row.
public struct ObjectReference: Sendable, Hashable {
  /// Which of a migration's two stores an object is in.
  public enum Store: String, Sendable, Hashable {
    /// The store that is read, and the store that is made of it.
    case source, destination
  }

  /// The object's own entity, never one that it inherits from.
  public var entity: EntityName
  /// `Z_PK` of the object's row.
  public var primaryKey: Int64
  /// The store that the object is in.
  public var store: Store

  /// Names an object. Whether it exists is not checked.
  public init(_ entity: EntityName, _ primaryKey: Int64, in store: Store) {
    self.entity = entity
    self.primaryKey = primaryKey
    self.store = store
  }
}

/// What an expression yields.
///
/// Equality is that of Foundation's `isEqual:`: numbers are equal by value, whatever their kind
/// (`1`, `1.0` and `YES`), texts by code points without normalisation, sets without regard to
/// order. Source: `core-data-migration.md` §4.5.
public enum ExpressionValue: Sendable {
  /// nil, and a column's NULL.
  case null
  /// `YES` or `NO`. Equal to the numbers 1 and 0.
  case boolean(Bool)
  /// A whole number of 64 bits.
  case integer(Int64)
  /// Always finite: arithmetic that leaves the range is an error.
  case real(Double)
  /// A decimal number, as attributes of that type have it.
  case decimal(DecimalNumber)
  /// A text.
  case string(String)
  /// Seconds since 2001-01-01 00:00:00 UTC.
  case date(Double)
  /// Bytes, such as those of a binary or transformable attribute.
  case data([UInt8])
  /// A UUID.
  case uuid(UUIDBytes)
  /// The absolute text of a URI.
  case url(String)
  /// An object of one of the two stores.
  case object(ObjectReference)
  /// A list, which may repeat values.
  case array([ExpressionValue])
  /// No two are equal. In the order in which they were met, so that every run gives the same.
  case set([ExpressionValue])
  /// No two are equal.
  case orderedSet([ExpressionValue])
  /// Values by keys: a composite attribute's elements, or a property-list dictionary.
  case dictionary([String: ExpressionValue])
  /// `$manager` and the like: has keys and takes messages, and is not a value of any property.
  case helper(EvaluationHelper)
}

/// What variables other than objects stand for. Source: `core-data-migration.md` §4.1.
public enum EvaluationHelper: Sendable, Hashable {
  /// `$manager`, `$entityMapping`, `$propertyMapping`, `$entityPolicy`, `$manager.sourceContext`
  /// and `$manager.destinationContext`.
  case manager, entityMapping, propertyMapping, entityPolicy, sourceContext, destinationContext
  /// What `fetchRequestForSourceEntityNamed:predicateString:` gives, for `FETCH` to perform.
  case fetchRequest(entity: EntityName, PredicateExpression)
}

/// The sixteen bytes of a UUID.
public struct UUIDBytes: Sendable, Hashable {
  /// The first eight bytes of the text form, the first one the most significant.
  public var high: UInt64
  /// The last eight bytes of the text form.
  public var low: UInt64

  /// A UUID of its bytes.
  ///
  /// - Parameter bytes: Sixteen, in the order of the text form; else nil.
  public init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == 16 else { return nil }
    high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    low = bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Reads `E621E1F8-C36C-495A-93FC-0C247A3E6E5F`, small letters too.
  public init?(text: String) {
    let utf8 = Array(text.utf8)
    guard utf8.count == 36 else { return nil }
    var digits: [UInt8] = []
    for (place, unit) in utf8.enumerated() {
      if [8, 13, 18, 23].contains(place) {
        guard unit == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let digit = HexadecimalText.digit(unit) else { return nil }
      digits.append(digit)
    }
    self.init(stride(from: 0, to: 32, by: 2).map { digits[$0] << 4 | digits[$0 + 1] })
  }

  /// The sixteen bytes in the order of the text form.
  public var bytes: [UInt8] {
    (0..<16).map { place in
      UInt8(truncatingIfNeeded: (place < 8 ? high : low) >> UInt64(56 - place % 8 * 8))
    }
  }

  /// Capital letters, as `-[NSUUID UUIDString]` writes them.
  public var text: String {
    let digits = HexadecimalText.text(bytes, capital: true)
    var result = ""
    for (place, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(place) { result.append("-") }
      result.append(digit)
    }
    return result
  }
}

enum HexadecimalText {
  static func digit(_ unit: UInt8) -> UInt8? {
    switch unit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): unit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): unit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): unit - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  static func text(_ bytes: [UInt8], capital: Bool = false) -> String {
    let digits = Array((capital ? "0123456789ABCDEF" : "0123456789abcdef").utf8)
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      result.append(digits[Int(byte >> 4)])
      result.append(digits[Int(byte & 15)])
    }
    return String(decoding: result, as: UTF8.self)
  }
}

extension ExpressionValue {
  /// True for `.null` only.
  public var isNull: Bool { if case .null = self { true } else { false } }

  /// The members of a collection; nil for everything else.
  public var members: [ExpressionValue]? {
    switch self {
    case .array(let members), .set(let members), .orderedSet(let members): members
    default: nil
    }
  }

  /// A set of these, each once, in the order in which they come.
  public static func set(of members: some Sequence<ExpressionValue>) -> ExpressionValue {
    .set(distinct(members))
  }

  /// An ordered set of these, each once, in the order in which they come.
  public static func orderedSet(of members: some Sequence<ExpressionValue>) -> ExpressionValue {
    .orderedSet(distinct(members))
  }

  static func distinct(_ members: some Sequence<ExpressionValue>) -> [ExpressionValue] {
    var seen: Set<ExpressionValue> = []
    return members.filter { seen.insert($0).inserted }
  }

  /// What it is, for messages; never what it holds.
  var kind: String {
    switch self {
    case .null: "nothing"
    case .boolean: "a Boolean"
    case .integer, .real: "a number"
    case .decimal: "a decimal number"
    case .string: "a text"
    case .date: "a date"
    case .data: "data"
    case .uuid: "a UUID"
    case .url: "a URI"
    case .object: "an object"
    case .array: "an array"
    case .set: "a set"
    case .orderedSet: "an ordered set"
    case .dictionary: "a dictionary"
    case .helper: "a helper of the migration"
    }
  }
}

extension ExpressionValue: Hashable {
  /// Numbers of any kind are equal by value; everything else by kind and value.
  public static func == (a: ExpressionValue, b: ExpressionValue) -> Bool {
    if let order = Number.order(a, b) { return order == 0 }
    switch (a, b) {
    case (.null, .null): return true
    case (.string(let x), .string(let y)), (.url(let x), .url(let y)):
      return x.utf8.elementsEqual(y.utf8)
    case (.date(let x), .date(let y)): return x == y
    case (.data(let x), .data(let y)): return x == y
    case (.uuid(let x), .uuid(let y)): return x == y
    case (.object(let x), .object(let y)): return x == y
    case (.array(let x), .array(let y)), (.orderedSet(let x), .orderedSet(let y)): return x == y
    case (.set(let x), .set(let y)): return x.count == y.count && Set(x) == Set(y)
    case (.dictionary(let x), .dictionary(let y)): return x == y
    case (.helper(let x), .helper(let y)): return x == y
    default: return false
    }
  }

  /// Equal values have equal hashes.
  public func hash(into hasher: inout Hasher) {
    switch self {
    // Equal numbers of any kind have the same nearest double.
    case .boolean(let value): hasher.combine(value ? 1.0 : 0.0)
    case .integer(let value): hasher.combine(Double(value))
    case .real(let value): hasher.combine(value)
    case .decimal(let value): hasher.combine(value.double)
    case .null: hasher.combine(0 as UInt8)
    case .string(let text), .url(let text):
      hasher.combine(1 as UInt8)
      for byte in text.utf8 { hasher.combine(byte) }
    case .date(let value): hasher.combine(value)
    case .data(let bytes): hasher.combine(bytes)
    case .uuid(let value): hasher.combine(value)
    case .object(let value): hasher.combine(value)
    case .array(let members), .orderedSet(let members): hasher.combine(members)
    case .set(let members): hasher.combine(members.count)
    case .dictionary(let pairs): hasher.combine(pairs.count)
    case .helper(let value): hasher.combine(value)
    }
  }
}
