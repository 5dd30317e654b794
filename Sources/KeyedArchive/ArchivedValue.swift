/// A value of a keyed archive, with references already followed one step.
///
/// What Foundation's value classes hold (strings, data, dates, UUIDs, URLs, numbers,
/// collections) is read through the properties below; each is nil for a value of another kind.
package enum ArchivedValue: Sendable, Hashable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case wideInteger(Int128)
  case real(Double)
  case text(String)
  case bytes([UInt8])
  /// Seconds since 2001-01-01 UTC.
  case time(Double)
  /// Arrays that stand inside an object without being one.
  case list([ArchivedValue])
  case instance(ArchivedObject)
  /// Any other property list, such as a dictionary without a class.
  case plain(PropertyList)

  init(_ raw: PropertyList, in storage: KeyedArchive.Storage) {
    guard case .uid(let reference) = raw else {
      self.init(content: raw, reference: -1, in: storage)
      return
    }
    // Checked when the archive was opened: in range, and never a reference to a reference.
    self.init(content: storage.objects[Int(reference)], reference: Int(reference), in: storage)
  }

  private init(content: PropertyList, reference: Int, in storage: KeyedArchive.Storage) {
    switch content {
    case _ where reference == 0: self = .null
    case .boolean(let value): self = .boolean(value)
    case .integer(let value): self = .integer(value)
    case .wideInteger(let value): self = .wideInteger(value)
    case .real(let value): self = .real(value)
    case .string(let value): self = .text(value)
    case .data(let value): self = .bytes(value)
    case .date(let value): self = .time(value)
    case .dictionary(let dictionary) where dictionary["$class"] != nil:
      self = .instance(
        ArchivedObject(reference: reference, content: dictionary, storage: storage))
    case .array(let values) where reference < 0:
      // One level only: a reference inside becomes a handle and is not followed further. The
      // inline nesting is that of the property list, whose depth is bounded.
      self = .list(values.map { ArchivedValue($0, in: storage) })
    default: self = .plain(content)
    }
  }

  var unlessNull: ArchivedValue? { self == .null ? nil : self }
}

extension ArchivedValue {
  package var object: ArchivedObject? {
    if case .instance(let object) = self { object } else { nil }
  }

  /// A string, plain or an `NSString`.
  package var string: String? {
    switch self {
    case .text(let text): return text
    case .instance(let object) where object.isKind(of: "NSString"):
      if case .text(let text)? = object["NS.string"] { return text }
      if case .bytes(let bytes)? = object["NS.bytes"] {
        return String(validating: bytes, as: UTF8.self)
      }
      return nil
    default: return nil
    }
  }

  /// Data, plain or an `NSData`.
  package var data: [UInt8]? {
    switch self {
    case .bytes(let bytes): return bytes
    case .instance(let object) where object.isKind(of: "NSData"):
      if case .bytes(let bytes)? = object["NS.data"] { return bytes }
      if case .bytes(let bytes)? = object["NS.bytes"] { return bytes }
      return nil
    default: return nil
    }
  }

  /// A date in seconds since 2001-01-01 UTC, plain or an `NSDate`.
  package var date: Double? {
    switch self {
    case .time(let seconds): return seconds
    case .instance(let object) where object.isKind(of: "NSDate"):
      switch object["NS.time"] {
      case .real(let seconds)?: return seconds
      case .integer(let seconds)?: return Double(seconds)
      default: return nil
      }
    default: return nil
    }
  }

  /// The 16 bytes of an `NSUUID`.
  package var uuid: [UInt8]? {
    guard let object, object.isKind(of: "NSUUID"), case .bytes(let bytes)? = object["NS.uuidbytes"],
      bytes.count == 16
    else { return nil }
    return bytes
  }

  /// The text of an `NSURL`, relative to its base where it has one.
  package var url: String? {
    guard let object, object.isKind(of: "NSURL") else { return nil }
    return object["NS.relative"]?.string
  }

  /// A boolean, or an integer as C reads it.
  package var boolean: Bool? {
    switch self {
    case .boolean(let value): value
    case .integer(let value): value != 0
    default: number.map { $0.double != 0 }
    }
  }

  /// An integer, a boolean as 0 or 1, or a number object that is whole.
  package var integer: Int64? {
    switch self {
    case .integer(let value): value
    case .boolean(let value): value ? 1 : 0
    default: number?.integer
    }
  }

  /// A number of any kind.
  package var real: Double? { number?.double }

  /// A number: plain, an `NSNumber` or an `NSDecimalNumber`.
  package var number: ArchivedNumber? {
    switch self {
    case .boolean(let value): return .integer(value ? 1 : 0)
    case .integer(let value): return .integer(value)
    case .wideInteger(let value): return .real(Double(value))
    case .real(let value): return .real(value)
    case .instance(let object): return ArchivedNumber(object)
    default: return nil
    }
  }

  /// The elements of an array, a set or an ordered set, or of an inline array.
  package var elements: [ArchivedValue]? {
    switch self {
    case .list(let values): return values
    case .instance(let object):
      let collections = ["NSArray", "NSSet", "NSOrderedSet"]
      guard collections.contains(where: { object.isKind(of: $0) }) else { return nil }
      if case .list(let values)? = object["NS.objects"] { return values }
      // The older spelling: one key an element.
      var values: [ArchivedValue] = []
      while let value = object["NS.object.\(values.count)"] { values.append(value) }
      return values
    default: return nil
    }
  }

  /// The pairs of a dictionary: an `NSDictionary` or an `NSKnownKeysDictionary1`, whose keys
  /// stand in a mapping of their own. Source: `core-data-models.md` §4.
  package var entries: [(key: ArchivedValue, value: ArchivedValue)]? {
    guard let object else { return nil }
    if let mapping = object.object("searchMapping"), let keys = mapping["keys"]?.elements,
      let values = object["values"]?.elements
    {
      let token = object.string("emptyToken") ?? Self.emptySlot
      return zip(keys, values).filter { $0.1.string != token }.map { (key: $0.0, value: $0.1) }
    }
    guard object.isKind(of: "NSDictionary") else { return nil }
    if case .list(let keys)? = object["NS.keys"], case .list(let values)? = object["NS.objects"] {
      return zip(keys, values).map { (key: $0.0, value: $0.1) }
    }
    var pairs: [(key: ArchivedValue, value: ArchivedValue)] = []
    while let key = object["NS.key.\(pairs.count)"],
      let value = object["NS.object.\(pairs.count)"]
    {
      pairs.append((key, value))
    }
    return pairs
  }

  /// ``entries`` whose keys are strings.
  package var stringEntries: [(key: String, value: ArchivedValue)]? {
    entries?.compactMap { pair in pair.key.string.map { (key: $0, value: pair.value) } }
  }

  /// What stands in a slot of an `NSKnownKeysDictionary1` that has no value.
  static let emptySlot = "__empty_slot_token_4c24_98dc_ac1e_b773__"
}
