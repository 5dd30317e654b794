import GodwitKeyedArchive

/// A property-list dictionary in a binary attribute: extra properties without a new model version.
///
/// Read in both forms, binary and XML; written in the binary one. Of a string attribute the XML form
/// is read, and the old one of OpenStep, which the description of a dictionary is in as long as it
/// holds no data; written is the XML form.
enum Bucket {
  /// 64 MiB. A bucket is decoded whole for every row.
  static let sizeLimit = 64 << 20

  /// Nil where there is no bucket or it has no such key.
  static func value(
    in data: ExpressionValue, forKey key: ExpressionValue
  ) throws(EvaluationProblem) -> ExpressionValue {
    let key = try name(key)
    guard let dictionary = try decoded(data), let found = dictionary[key] else { return .null }
    return try ExpressionValue(propertyList: found)
  }

  /// The bucket with a pair more; nil takes the pair out. Without a bucket a new one is begun, and
  /// nothing set in none stays none.
  static func setting(
    _ value: ExpressionValue, forKey key: ExpressionValue, in data: ExpressionValue
  ) throws(EvaluationProblem) -> ExpressionValue {
    let key = try name(key)
    let found = try decoded(data)
    if found == nil, value.isNull { return .null }
    var dictionary = found ?? PropertyListDictionary()
    dictionary[key] = value.isNull ? nil : try value.propertyList(depth: 0)
    let list = PropertyList.dictionary(dictionary)
    let result: ExpressionValue
    let size: Int
    if case .string = data {
      let text = try xml(list)
      (result, size) = (.string(text), text.utf8.count)
    } else {
      let bytes = list.binary()
      (result, size) = (.data(bytes), bytes.count)
    }
    // A larger one would not be read again.
    guard size <= sizeLimit else {
      throw .tooLarge(what: "bytes in one bucket", limit: sizeLimit)
    }
    return result
  }

  private static func xml(_ list: PropertyList) throws(EvaluationProblem) -> String {
    do {
      return try list.xml()
    } catch {
      throw .notRepresentable(
        what: error.words, by: "a bucket in a String attribute, which is XML,")
    }
  }

  private static func name(_ key: ExpressionValue) throws(EvaluationProblem) -> String {
    guard case .string(let key) = key else {
      throw .wrongKind(found: key.kind, needed: "a text, the key")
    }
    return key
  }

  private static func decoded(
    _ data: ExpressionValue
  ) throws(EvaluationProblem) -> PropertyListDictionary? {
    switch data {
    case .null: return nil
    case .data(let bytes):
      return try dictionary(bytes.count) { try PropertyList(bytes: bytes) }
    case .string(let text):
      return try dictionary(text.utf8.count) { try PropertyList(text: text) }
    default: throw .wrongKind(found: data.kind, needed: "data or a text")
    }
  }

  private static func dictionary(
    _ size: Int, _ read: () throws -> PropertyList
  ) throws(EvaluationProblem) -> PropertyListDictionary {
    guard size <= sizeLimit else {
      throw .tooLarge(what: "bytes in one bucket", limit: sizeLimit)
    }
    let list: PropertyList
    do {
      list = try read()
    } catch {
      // The reader's words may quote the bytes: they stay out.
      throw .damagedPropertyList(
        reason: (error as? ArchiveError)?.withoutData ?? "it cannot be read")
    }
    guard let dictionary = list.dictionary else {
      throw .damagedPropertyList(reason: "it holds something else than a dictionary")
    }
    // The envelope of an object is no bucket: nobody who unarchives it finds a key beside it.
    guard dictionary["$archiver"] == nil || dictionary["$objects"] == nil else {
      throw .damagedPropertyList(reason: "it is an object that NSKeyedArchiver archived")
    }
    return dictionary
  }
}

extension ArchiveError {
  fileprivate var withoutData: String {
    switch self {
    case .notAPropertyList: "it is neither a binary nor an XML property list"
    case .malformed(let offset, _): "it is damaged at byte \(offset)"
    case .tooLarge(let what, let limit): "it has more than \(limit) \(what)"
    case .tooDeep(_, let limit): "it has more than \(limit) levels"
    case .circular: "a container holds itself"
    case .notAKeyedArchive: "it is not a keyed archive"
    case .malformedXML(let line, _): "the XML is not well formed at line \(line)"
    }
  }
}

extension ExpressionValue {
  /// Recursion is bounded by ``PropertyList/Limits/depth``, which the reader keeps.
  init(propertyList list: PropertyList) throws(EvaluationProblem) {
    switch list {
    case .boolean(let value): self = .boolean(value)
    case .integer(let value): self = .integer(value)
    case .wideInteger(let value):
      guard
        let decimal = DecimalNumber(
          isNegative: value < 0, mantissa: value.magnitude, exponent: 0)
      else { throw .overflow }
      self = .decimal(decimal)
    case .real(let value):
      guard value.isFinite else { throw .overflow }
      self = .real(value)
    case .date(let seconds):
      guard seconds.isFinite else { throw .overflow }
      self = .date(seconds)
    case .data(let bytes): self = .data(bytes)
    case .string(let text): self = .string(text)
    case .unpairedText:
      throw .notRepresentable(what: UnwritableValue.unpairedText.words, by: "an expression's text")
    case .uid(let place): self = .integer(Int64(place))
    case .array(let members): self = .array(try Self.values(members))
    case .set(let members): self = .set(of: try Self.values(members))
    case .dictionary(let pairs):
      var result: [String: ExpressionValue] = [:]
      for (key, value) in pairs {
        guard result[key] == nil else {
          throw .notRepresentable(
            what: "two keys that differ only in Unicode normalisation",
            by: "a dictionary of an expression")
        }
        result[key] = try ExpressionValue(propertyList: value)
      }
      self = .dictionary(result)
    }
  }

  private static func values(
    _ members: [PropertyList]
  ) throws(EvaluationProblem) -> [ExpressionValue] {
    var result: [ExpressionValue] = []
    result.reserveCapacity(members.count)
    for member in members { result.append(try ExpressionValue(propertyList: member)) }
    return result
  }

  /// What a property list can hold of it: a UUID and a URI as their texts, a decimal as a number.
  func propertyList(depth: Int) throws(EvaluationProblem) -> PropertyList {
    guard depth < PropertyList.Limits.depth / 2 else { throw .tooDeep }
    switch self {
    case .boolean(let value): return .boolean(value)
    case .integer(let value): return .integer(value)
    case .real(let value): return .real(value)
    case .decimal(let value):
      if let integral = value.integral { return .integer(integral) }
      // What Core Foundation writes as an integer, too.
      return value.unsignedIntegral.map { .wideInteger(Int128($0)) } ?? .real(value.double)
    case .string(let text), .url(let text): return .string(text)
    case .date(let seconds): return .date(seconds)
    case .data(let bytes): return .data(bytes)
    case .uuid(let uuid): return .string(uuid.text)
    case .array(let members), .set(let members), .orderedSet(let members):
      var result: [PropertyList] = []
      for member in members { result.append(try member.propertyList(depth: depth + 1)) }
      return .array(result)
    case .dictionary(let pairs):
      var result = PropertyListDictionary()
      for key in pairs.keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
        guard let value = pairs[key], !value.isNull else { continue }
        result[key] = try value.propertyList(depth: depth + 1)
      }
      return .dictionary(result)
    case .null, .object, .helper: throw .wrongKind(found: kind, needed: "a property-list value")
    }
  }
}
