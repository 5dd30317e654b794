import GodwitObjectModel
import GodwitSQLite

/// What every row of one entity must look like by itself, compiled for the hot path.
///
/// One rule a column: allowed storage classes, integer range, required, 16-byte UUID, external
/// storage marker. Nothing is allocated for sound rows. Columns of other entities that share the
/// table are not looked at: an in-place migration may have filled them.
///
/// Source: `core-data-sqlite-format.md` §5.
public struct RowRules: Codable, Sendable, Equatable {
  /// One column's rule.
  public struct Rule: Codable, Sendable, Equatable {
    /// What is looked at beyond the storage class.
    public enum Check: UInt8, Codable, Sendable {
      case none = 0
      /// Between ``low`` and ``high``.
      case range = 1
      /// 16 bytes.
      case uuid = 2
      /// 0x01 and data, or 0x02 and the name of a file.
      case external = 3
    }

    /// Place of the column in the row.
    public let place: Int32
    /// Bits of `RawValue.Kind`: 1 << kind.
    public let allowed: UInt8
    public let check: Check
    public let low: Int64
    public let high: Int64
    /// The entity whose rows are judged.
    public let entity: EntityName
    public let property: String
    package let type: AttributeType?

    /// Whether the value may not be NULL.
    public var isRequired: Bool { allowed & Self.bit(.null) == 0 }

    @inlinable
    static func bit(_ kind: RawValue.Kind) -> UInt8 { 1 << kind.rawValue }
  }

  /// By column.
  public let rules: [Rule]
  /// The part of ``rules`` that is read for every row.
  @usableFromInline let compiled: [Compiled]

  @usableFromInline struct Compiled: Sendable, Equatable {
    @usableFromInline let place: Int32
    @usableFromInline let allowed: UInt8
    @usableFromInline let check: UInt8
    @usableFromInline let low: Int64
    @usableFromInline let high: Int64
  }

  public init(_ rules: [Rule]) {
    self.rules = rules
    compiled = rules.map {
      Compiled(
        place: $0.place, allowed: $0.allowed, check: $0.check.rawValue, low: $0.low, high: $0.high)
    }
  }

  /// - Parameters:
  ///   - columns: The columns of the row as it will be given, by name. Rules for other columns
  ///     are left out.
  package init(of entity: EntityName, in layout: StoreLayout, columns: [String]) {
    let places = Dictionary(
      columns.enumerated().map { ($1, Int32($0)) }, uniquingKeysWith: { first, _ in first })
    self.init(
      layout.ruledColumns(of: entity).compactMap { ruled in
        places[ruled.column].map { ruled.rule(at: $0, of: entity) }
      })
  }

  public init(from decoder: any Decoder) throws {
    self.init(try decoder.singleValueContainer().decode([Rule].self))
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rules)
  }
}

extension RowRules {
  /// How a value breaks the rule of its column.
  @frozen public enum Failure: UInt8, Sendable, CaseIterable {
    /// NULL where a value is required.
    case null = 0
    case storageClass = 1
    /// Of the right class and out of range, of another length, without a marker.
    case value = 2
  }

  /// Judges one row.
  ///
  /// - Parameters:
  ///   - values: As many as the columns that the rules were made for.
  ///   - report: Told the number of each rule that the row breaks.
  @inlinable
  public func check(
    _ values: UnsafePointer<RawValue>, key: Int64,
    report: (_ rule: Int, _ failure: Failure, _ key: Int64) -> Void
  ) {
    compiled.withUnsafeBufferPointer { rules in
      for index in rules.indices {
        let rule = rules[index]
        let value = values + Int(rule.place)
        let kind = value.pointee.kind
        guard rule.allowed & (1 << kind.rawValue) != 0 else {
          report(index, kind == .null ? .null : .storageClass, key)
          continue
        }
        if rule.check == 0 || kind == .null { continue }
        if rule.check == 1 {
          let bits = value.pointee.bits
          if bits < rule.low || bits > rule.high { report(index, .value, key) }
        } else if rule.check == 2 {
          if value.pointee.count != 16 { report(index, .value, key) }
        } else if !RowRules.hasMarker(value.pointee) {
          report(index, .value, key)
        }
      }
    }
  }

  /// True for a blob that begins with 0x01, or is 0x02, a UUID in capitals and a zero byte.
  ///
  /// Source: `core-data-sqlite-format.md` §5.1.
  @inlinable
  static func hasMarker(_ value: RawValue) -> Bool { marker(of: value.buffer) != nil }

  /// Where a value's data is that may lie in a file of its own.
  @frozen public enum Marker: Sendable { case inline, file }

  /// What the marker before a value says; nil for a value without one.
  @inlinable
  public static func marker(of bytes: UnsafeRawBufferPointer) -> Marker? {
    guard let marker = bytes.first else { return nil }
    if marker == 1 { return .inline }
    return marker == 2 && isFileName(bytes) ? .file : nil
  }

  /// True for 38 bytes whose middle is a UUID in capitals, and whose end is a zero byte: only such
  /// a text may become part of a path. The marker before it is the caller's to look at.
  public static func isFileName(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count == 38, bytes[37] == 0 else { return false }
    for place in 0..<36 {
      let byte = bytes[place + 1]
      switch place {
      case 8, 13, 18, 23:
        if byte != UInt8(ascii: "-") { return false }
      default:
        let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        if !isDigit && !(UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte) { return false }
      }
    }
    return true
  }
}

/// The rules that rows broke: how often, and which rows.
public struct RowFailures: Sendable {
  private var counts: [Int: (count: Int64, examples: [Int64])] = [:]

  public init() {}

  public var isEmpty: Bool { counts.isEmpty }

  public mutating func add(rule: Int, _ failure: RowRules.Failure, key: Int64) {
    let place = rule * RowRules.Failure.allCases.count + Int(failure.rawValue)
    counts[place, default: (0, [])].count += 1
    if counts[place, default: (0, [])].examples.count < StoreFinding.mostExamples {
      counts[place, default: (0, [])].examples.append(key)
    }
  }

  /// In the order of the rules they were counted under.
  public func findings(_ rules: RowRules) -> [StoreFinding] {
    counts.sorted { $0.key < $1.key }.compactMap { place, found in
      let (number, rest) = place.quotientAndRemainder(dividingBy: RowRules.Failure.allCases.count)
      guard rules.rules.indices.contains(number),
        let failure = RowRules.Failure(rawValue: UInt8(rest))
      else { return nil }
      let rule = rules.rules[number]
      let (kind, message) = rule.describe(failure)
      return StoreFinding(
        kind: kind, entity: rule.entity.rawValue, property: rule.property, message: message,
        count: found.count, examples: found.examples)
    }
  }
}

extension RowRules {
  /// Judges one row and keeps what it breaks.
  @inlinable
  public func check(
    _ values: UnsafePointer<RawValue>, key: Int64, into failures: inout RowFailures
  ) {
    check(values, key: key) { rule, failure, key in
      failures.add(rule: rule, failure, key: key)
    }
  }
}

extension RowRules.Rule {
  /// How the failure of this rule is told.
  public func describe(_ failure: RowRules.Failure) -> (StoreFinding.Kind, String) {
    switch (failure, check) {
    case (.null, _): (.required, "is required and NULL")
    case (.storageClass, _), (.value, .none):
      (.type, "has a storage class that \(type.map(\.xmlName) ?? "a key") never has")
    case (.value, .range): (.type, "is outside of \(type.map(\.xmlName) ?? "its type")")
    case (.value, .uuid): (.type, "is not a 16-byte UUID")
    case (.value, .external): (.external, "has no valid external storage marker")
    }
  }
}
