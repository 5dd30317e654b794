import FoundationEssentials
import GodwitObjectModel

// What policies tell each other goes through files, from stage to stage.
extension ExpressionValue: Codable {
  private enum Kind: String, Codable {
    case null, boolean, integer, real, decimal, string, date, data, uuid, url, object, array, set
    case orderedSet, dictionary
  }

  private enum CodingKeys: String, CodingKey {
    case kind = "k"
    case value = "v"
    case entity = "e"
    case store = "s"
  }

  /// Reads the form that ``encode(to:)`` writes.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    func value<Value: Decodable>(_ type: Value.Type) throws -> Value {
      try container.decode(type, forKey: .value)
    }
    func damaged(_ what: String) -> DecodingError {
      .dataCorruptedError(forKey: .value, in: container, debugDescription: "This is no \(what).")
    }
    switch try container.decode(Kind.self, forKey: .kind) {
    case .null: self = .null
    case .boolean: self = .boolean(try value(Bool.self))
    case .integer: self = .integer(try value(Int64.self))
    // As bits: every double comes back as it was.
    case .real: self = .real(Double(bitPattern: try value(UInt64.self)))
    case .date: self = .date(Double(bitPattern: try value(UInt64.self)))
    case .decimal:
      guard let decimal = DecimalNumber(text: try value(String.self)) else {
        throw damaged("decimal number")
      }
      self = .decimal(decimal)
    case .string: self = .string(try value(String.self))
    // As Base64.
    case .data: self = .data([UInt8](try value(Data.self)))
    case .uuid:
      guard let uuid = UUIDBytes(text: try value(String.self)) else { throw damaged("UUID") }
      self = .uuid(uuid)
    case .url: self = .url(try value(String.self))
    case .object:
      let store = try container.decode(String.self, forKey: .store)
      guard let store = ObjectReference.Store(rawValue: store) else { throw damaged("object") }
      self = .object(
        ObjectReference(
          try container.decode(EntityName.self, forKey: .entity), try value(Int64.self), in: store))
    case .array: self = .array(try value([ExpressionValue].self))
    case .set: self = .set(try value([ExpressionValue].self))
    case .orderedSet: self = .orderedSet(try value([ExpressionValue].self))
    case .dictionary: self = .dictionary(try value([String: ExpressionValue].self))
    }
  }

  /// Writes the kind of value, and the value.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    func put(_ kind: Kind, _ value: some Encodable) throws {
      try container.encode(kind, forKey: .kind)
      try container.encode(value, forKey: .value)
    }
    switch self {
    case .null: try container.encode(Kind.null, forKey: .kind)
    case .boolean(let value): try put(.boolean, value)
    case .integer(let value): try put(.integer, value)
    case .real(let value): try put(.real, value.bitPattern)
    case .date(let value): try put(.date, value.bitPattern)
    case .decimal(let value): try put(.decimal, value.description)
    case .string(let value): try put(.string, value)
    case .data(let value): try put(.data, Data(value))
    case .uuid(let value): try put(.uuid, value.text)
    case .url(let value): try put(.url, value)
    case .object(let object):
      try put(.object, object.primaryKey)
      try container.encode(object.entity, forKey: .entity)
      try container.encode(object.store.rawValue, forKey: .store)
    case .array(let members): try put(.array, members)
    case .set(let members): try put(.set, members)
    case .orderedSet(let members): try put(.orderedSet, members)
    case .dictionary(let pairs): try put(.dictionary, pairs)
    case .helper:
      throw EncodingError.invalidValue(
        self, .init(codingPath: encoder.codingPath, debugDescription: "This is not a value."))
    }
  }

  /// The value with every object in it replaced.
  package func mapObjects(_ body: (ObjectReference) -> ObjectReference) -> ExpressionValue {
    switch self {
    case .object(let object): .object(body(object))
    case .array(let members): .array(members.map { $0.mapObjects(body) })
    case .set(let members): .set(members.map { $0.mapObjects(body) })
    case .orderedSet(let members): .orderedSet(members.map { $0.mapObjects(body) })
    case .dictionary(let pairs): .dictionary(pairs.mapValues { $0.mapObjects(body) })
    default: self
    }
  }
}
