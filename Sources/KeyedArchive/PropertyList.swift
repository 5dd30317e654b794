/// A property list: the values that Apple's property list files can hold.
///
/// Reading never makes objects of any class: a keyed archive is a property list too, and
/// its references are ``uid(_:)`` values.
///
/// Source: `plist(5)`; the comment at the head of Core Foundation's open-source
/// `CFBinaryPList.c` for the binary form; `core-data-models.md` §4.
package indirect enum PropertyList: Sendable, Hashable {
  case boolean(Bool)
  case integer(Int64)
  /// An integer outside the range of `Int64`; the binary form has 16-byte integers.
  case wideInteger(Int128)
  case real(Double)
  /// Seconds since 2001-01-01 00:00:00 UTC.
  case date(Double)
  case data([UInt8])
  case string(String)
  /// A text with an unpaired UTF-16 unit, as its units: `NSString` and the binary form hold it, and no
  /// `String` does.
  case unpairedText([UInt16])
  /// The place of an object in the `$objects` of a keyed archive.
  case uid(UInt32)
  case array([PropertyList])
  /// A set, in the order in which the file lists it.
  case set([PropertyList])
  case dictionary(PropertyListDictionary)

  /// Bounds on what a reader accepts. They stop hostile files, not large ones.
  package enum Limits {
    /// Containers inside containers. Foundation's own reader stops at 512.
    package static let depth = 256
    /// Values of the whole tree, a value that is referred to twice counted twice.
    package static let values = 8_000_000
    /// Objects of a file: they take about 100 bytes each. The largest model archive seen has about 20 000; one of as
    /// many attributes as a model may have has half a million.
    package static let objects = 1_000_000
  }
}

extension PropertyList {
  package var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
  package var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  package var string: String? { if case .string(let value) = self { value } else { nil } }
  package var data: [UInt8]? { if case .data(let value) = self { value } else { nil } }
  package var date: Double? { if case .date(let value) = self { value } else { nil } }
  package var uid: UInt32? { if case .uid(let value) = self { value } else { nil } }
  package var dictionary: PropertyListDictionary? {
    if case .dictionary(let value) = self { value } else { nil }
  }

  /// A number as a double: an integer or a real.
  package var real: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(value)
    case .wideInteger(let value): Double(value)
    default: nil
    }
  }

  /// The elements of an array or a set.
  package var array: [PropertyList]? {
    switch self {
    case .array(let values), .set(let values): values
    default: nil
    }
  }

  /// A value of a dictionary; nil where this is not a dictionary or has no such key.
  package subscript(key: String) -> PropertyList? { dictionary?[key] }

  /// A text out of UTF-16 units.
  init(text units: [UInt16]) {
    self = String(validating: units, as: UTF16.self).map(Self.string) ?? .unpairedText(units)
  }

  /// Reads a binary or an XML property list; the first bytes decide which.
  ///
  /// - Throws: ``ArchiveError``.
  /// - Complexity: O(*n*) in the number of bytes, in time and in memory.
  package init(bytes: [UInt8]) throws {
    if bytes.starts(with: BinaryPropertyListReader.magic) {
      self = try BinaryPropertyListReader.read(bytes)
    } else {
      self = try XMLPropertyListReader.read(bytes)
    }
  }

  /// Reads a property list out of a text: an XML one, or one of the old form.
  ///
  /// - Throws: ``ArchiveError``.
  package init(text: String) throws {
    let first = text.utf8.first { byte in byte > 0x20 && ![0xEF, 0xBB, 0xBF].contains(byte) }
    self =
      first == UInt8(ascii: "<")
      ? try XMLPropertyListReader.read(Array(text.utf8))
      : try OpenStepPropertyListReader.read(text)
  }

  /// The XML form, which a text can hold.
  ///
  /// - Throws: ``UnwritableValue`` for what no reader of XML takes.
  package func xml() throws(UnwritableValue) -> String { try XMLPropertyListWriter.text(self) }

  /// The binary form, version 00. The same value always gives the same bytes.
  package func binary() -> [UInt8] { BinaryPropertyListWriter.write(self) }
}

/// A dictionary of a property list, in the order of the file.
///
/// Two dictionaries are equal when they have the same pairs, in whatever order. Keys are compared by their
/// Unicode scalars, as `NSString` compares: Swift takes `é` as one scalar and as `e` with an accent for one key.
package struct PropertyListDictionary: Sendable {
  package private(set) var keys: [String]
  package private(set) var values: [PropertyList]
  /// Kept only above ``scanLimit`` keys: objects of archives have about ten, and comparing
  /// ten short strings is quicker than building a table of them.
  private var places: [ScalarKey: Int]
  private static let scanLimit = 16

  package init() {
    keys = []
    values = []
    places = [:]
  }

  /// Of two pairs with one key the later value counts, as in Foundation.
  package init(_ pairs: some Sequence<(key: String, value: PropertyList)>) {
    self.init()
    for (key, value) in pairs { self[key] = value }
  }

  package var count: Int { keys.count }
  package var isEmpty: Bool { keys.isEmpty }

  /// Setting nil takes the pair out; setting a new key puts it last.
  package subscript(key: String) -> PropertyList? {
    get { place(of: key).map { values[$0] } }
    set {
      switch (place(of: key), newValue) {
      case (let place?, let value?):
        values[place] = value
      case (let place?, nil):
        keys.remove(at: place)
        values.remove(at: place)
        places = [:]
        indexIfLarge()
      case (nil, let value?):
        keys.append(key)
        values.append(value)
        if places.isEmpty { indexIfLarge() } else { places[ScalarKey(text: key)] = keys.count - 1 }
      case (nil, nil):
        break
      }
    }
  }

  private func place(of key: String) -> Int? {
    places.isEmpty
      ? keys.firstIndex { $0.hasSameScalars(as: key) } : places[ScalarKey(text: key)]
  }

  private mutating func indexIfLarge() {
    guard keys.count > Self.scanLimit else { return }
    places = Dictionary(uniqueKeysWithValues: keys.enumerated().map { (ScalarKey(text: $1), $0) })
  }

  /// A text by its scalars.
  private struct ScalarKey: Hashable {
    let text: String

    static func == (a: Self, b: Self) -> Bool { a.text.hasSameScalars(as: b.text) }

    func hash(into hasher: inout Hasher) {
      var text = text
      text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
  }
}

extension PropertyListDictionary: Sequence {
  package func makeIterator() -> AnyIterator<(key: String, value: PropertyList)> {
    var place = 0
    return AnyIterator {
      guard place < keys.count else { return nil }
      defer { place += 1 }
      return (keys[place], values[place])
    }
  }
}

extension PropertyListDictionary: Hashable {
  package static func == (a: Self, b: Self) -> Bool {
    a.count == b.count && a.allSatisfy { b[$0.key] == $0.value }
  }

  package func hash(into hasher: inout Hasher) {
    // Equal dictionaries may differ in order, so only what has no order goes in.
    hasher.combine(count)
  }
}

extension PropertyListDictionary: ExpressibleByDictionaryLiteral {
  package init(dictionaryLiteral elements: (String, PropertyList)...) {
    self.init(elements.map { (key: $0.0, value: $0.1) })
  }
}

extension String {
  /// Whether two texts have the same Unicode scalars.
  fileprivate func hasSameScalars(as other: String) -> Bool {
    // In UTF-8 texts of other lengths are other texts, and most keys differ in length.
    utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
  }
}
