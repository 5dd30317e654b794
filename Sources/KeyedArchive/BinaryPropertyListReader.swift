/// Reads the binary form of a property list.
///
///     "bplist00" · objects · offset table · 32 bytes of trailer
///
///     trailer offset  size  field
///                  6     1  bytes in each entry of the offset table, 1–8
///                  7     1  bytes in each object reference, 1–8
///                  8     8  number of objects
///                 16     8  number of the top object
///                 24     8  where the offset table begins
///
/// Integers are big-endian. Every object opens with a marker byte: kind in the high four bits,
/// size in the low four; size 15 means that an integer object with the size follows.
///
/// Source: the comment at the head of Core Foundation's open-source `CFBinaryPList.c`.
///
/// Nothing in the file is believed. Every count is checked against the bytes that are there
/// before memory is asked for. The extents of all objects together may not pass the length of
/// the file, since no writer lets objects overlap: that keeps work and memory linear.
struct BinaryPropertyListReader {
  static let magic = Array("bplist0".utf8)
  private static let trailerSize = 32
  private static let headerSize = 8

  private let bytes: [UInt8]
  private let offsetSize: Int
  private let referenceSize: Int
  private let objectCount: Int
  private let offsetTable: Int

  private struct Parsed {
    let value: PropertyList
    /// Values of the tree below and with this one, shared ones counted each time.
    let size: Int
  }
  private enum State {
    case unread
    case open
    case done(Parsed)
  }
  private var states: [State]
  private var unclaimed: Int

  static func read(_ bytes: [UInt8]) throws -> PropertyList {
    var reader = try BinaryPropertyListReader(bytes)
    return try reader.top()
  }

  private init(_ bytes: [UInt8]) throws {
    guard bytes.starts(with: Self.magic), bytes.count >= Self.headerSize + 1 + Self.trailerSize
    else { throw ArchiveError.malformed(offset: bytes.count, reason: "it is cut short") }
    let trailer = bytes.count - Self.trailerSize
    func word(_ place: Int) throws -> Int {
      var value: UInt64 = 0
      for byte in bytes[(trailer + place)..<(trailer + place + 8)] {
        value = value << 8 | UInt64(byte)
      }
      guard let number = Int(exactly: value) else {
        throw ArchiveError.malformed(offset: trailer + place, reason: "a number is out of range")
      }
      return number
    }
    let (offsetSize, referenceSize) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize) else {
      throw ArchiveError.malformed(offset: trailer + 6, reason: "an integer size is out of range")
    }
    let (count, table) = (try word(8), try word(24))
    guard table > Self.headerSize, table <= trailer, count > 0,
      count <= (trailer - table) / offsetSize, count <= table - Self.headerSize
    else {
      throw ArchiveError.malformed(
        offset: trailer + 8, reason: "the offset table does not fit into the file")
    }
    guard count <= PropertyList.Limits.objects else {
      throw ArchiveError.tooLarge(what: "objects", limit: PropertyList.Limits.objects)
    }
    self.bytes = bytes
    self.offsetSize = offsetSize
    self.referenceSize = referenceSize
    self.objectCount = count
    self.offsetTable = table
    self.states = Array(repeating: .unread, count: count)
    self.unclaimed = bytes.count
  }

  private mutating func top() throws -> PropertyList {
    let place = bytes.count - Self.trailerSize + 16
    return try object(try number(at: place, size: 8, end: bytes.count), depth: 0).value
  }

  /// An unsigned big-endian integer of 1–8 bytes that lies before `end`.
  private func number(at place: Int, size: Int, end: Int) throws -> Int {
    guard place >= 0, size <= end - place else {
      throw ArchiveError.malformed(offset: min(place, end), reason: "an object is cut short")
    }
    var value: UInt64 = 0
    for byte in bytes[place..<(place + size)] { value = value << 8 | UInt64(byte) }
    guard let number = Int(exactly: value) else {
      throw ArchiveError.malformed(offset: place, reason: "a number is out of range")
    }
    return number
  }

  private mutating func claim(_ count: Int, at place: Int) throws {
    guard count <= offsetTable - place, place >= Self.headerSize else {
      throw ArchiveError.malformed(offset: place, reason: "an object is cut short")
    }
    guard count <= unclaimed else {
      throw ArchiveError.malformed(offset: place, reason: "objects overlap")
    }
    unclaimed -= count
  }

  /// Depth is bounded by ``PropertyList/Limits/depth``, so the recursion is too.
  private mutating func object(_ index: Int, depth: Int) throws -> Parsed {
    guard index < objectCount else {
      throw ArchiveError.malformed(
        offset: offsetTable, reason: "a reference goes past the last object")
    }
    switch states[index] {
    case .done(let parsed): return parsed
    case .open: throw ArchiveError.circular
    case .unread: break
    }
    guard depth < PropertyList.Limits.depth else {
      throw ArchiveError.tooDeep(key: nil, limit: PropertyList.Limits.depth)
    }
    states[index] = .open
    let entry = offsetTable + index * offsetSize
    let parsed = try content(
      at: try number(at: entry, size: offsetSize, end: bytes.count), depth: depth)
    guard parsed.size <= PropertyList.Limits.values else {
      throw ArchiveError.tooLarge(what: "values", limit: PropertyList.Limits.values)
    }
    states[index] = .done(parsed)
    return parsed
  }

  private mutating func content(at place: Int, depth: Int) throws -> Parsed {
    try claim(1, at: place)
    let (kind, low) = (bytes[place] >> 4, Int(bytes[place] & 15))
    func leaf(_ value: PropertyList) -> Parsed { Parsed(value: value, size: 1) }
    switch kind {
    case 0x0 where low == 8: return leaf(.boolean(false))
    case 0x0 where low == 9: return leaf(.boolean(true))
    case 0x1 where low <= 4: return leaf(try integer(at: place + 1, size: 1 << low))
    case 0x2 where low == 2:
      let bits = UInt32(try unsigned(at: place + 1, size: 4))
      return leaf(.real(Double(Float(bitPattern: bits))))
    case 0x2 where low == 3:
      return leaf(.real(Double(bitPattern: try unsigned(at: place + 1, size: 8))))
    case 0x3 where low == 3:
      return leaf(.date(Double(bitPattern: try unsigned(at: place + 1, size: 8))))
    case 0x8 where low < 8:
      guard let uid = UInt32(exactly: try unsigned(at: place + 1, size: low + 1)) else {
        throw ArchiveError.malformed(offset: place, reason: "a UID is out of range")
      }
      return leaf(.uid(uid))
    default: break
    }
    let (count, start) = try size(low: low, at: place)
    switch kind {
    case 0x4: return leaf(.data(try payload(start, count)))
    case 0x5: return leaf(.string(try ascii(try payload(start, count), at: start)))
    case 0x6:
      guard count <= bytes.count / 2 else {
        throw ArchiveError.malformed(offset: place, reason: "a string is cut short")
      }
      let pairs = try payload(start, count * 2)
      let units = stride(from: 0, to: pairs.count, by: 2).map {
        UInt16(pairs[$0]) << 8 | UInt16(pairs[$0 + 1])
      }
      return leaf(PropertyList(text: units))
    case 0xA, 0xC:
      let (values, size) = try elements(start, count, depth: depth)
      return Parsed(value: kind == 0xA ? .array(values) : .set(values), size: size + 1)
    case 0xD: return try dictionary(start, count, depth: depth)
    default:
      throw ArchiveError.malformed(offset: place, reason: "an object of an unknown kind")
    }
  }

  private mutating func unsigned(at place: Int, size: Int) throws -> UInt64 {
    try payload(place, size).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Integers of 1, 2 and 4 bytes are unsigned; those of 8 and 16 are signed.
  private mutating func integer(at place: Int, size: Int) throws -> PropertyList {
    let digits = try payload(place, size)
    if size == 8 {
      return .integer(digits.reduce(Int64(0)) { $0 << 8 | Int64($1) })
    }
    let wide = digits.reduce(Int128(0)) { $0 << 8 | Int128($1) }
    return Int64(exactly: wide).map(PropertyList.integer) ?? .wideInteger(wide)
  }

  /// The size of an object and where its content begins.
  private mutating func size(low: Int, at place: Int) throws -> (count: Int, start: Int) {
    guard low == 15 else { return (low, place + 1) }
    try claim(1, at: place + 1)
    let marker = bytes[place + 1]
    guard marker >> 4 == 1, marker & 15 <= 3 else {
      throw ArchiveError.malformed(offset: place + 1, reason: "a size is not an integer")
    }
    let width = 1 << Int(marker & 15)
    let count = try number(at: place + 2, size: width, end: offsetTable)
    try claim(width, at: place + 2)
    return (count, place + 2 + width)
  }

  private mutating func payload(_ start: Int, _ count: Int) throws -> [UInt8] {
    try claim(count, at: start)
    return Array(bytes[start..<(start + count)])
  }

  private func ascii(_ text: [UInt8], at place: Int) throws -> String {
    guard text.allSatisfy({ $0 < 0x80 }) else {
      throw ArchiveError.malformed(offset: place, reason: "a string is not ASCII")
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// - Parameter keys: Those of the values in the outermost dictionary, for a message.
  private mutating func elements(
    _ start: Int, _ count: Int, depth: Int, keys: [PropertyList] = []
  ) throws -> ([PropertyList], size: Int) {
    guard count <= bytes.count / referenceSize else {
      throw ArchiveError.malformed(offset: start, reason: "a container is cut short")
    }
    try claim(count * referenceSize, at: start)
    var values: [PropertyList] = []
    values.reserveCapacity(count)
    var size = 0
    for place in 0..<count {
      let index = try number(
        at: start + place * referenceSize, size: referenceSize, end: offsetTable)
      let parsed: Parsed
      do {
        parsed = try object(index, depth: depth + 1)
      } catch ArchiveError.tooDeep(_, let limit) where place < keys.count {
        throw ArchiveError.tooDeep(key: keys[place].string, limit: limit)
      }
      // Each size is at most the limit and there are fewer terms than bytes: no overflow.
      size += parsed.size
      values.append(parsed.value)
    }
    return (values, size)
  }

  private mutating func dictionary(_ start: Int, _ count: Int, depth: Int) throws -> Parsed {
    guard count <= bytes.count / referenceSize else {
      throw ArchiveError.malformed(offset: start, reason: "a dictionary is cut short")
    }
    let (keys, _) = try elements(start, count, depth: depth)
    let (values, size) = try elements(
      start + count * referenceSize, count, depth: depth, keys: depth == 0 ? keys : [])
    var result = PropertyListDictionary()
    for (key, value) in zip(keys, values) {
      guard case .string(let name) = key else {
        // An unpaired UTF-16 unit in a key is refused, too: it would not be written as it was.
        throw ArchiveError.malformed(offset: start, reason: "a dictionary key is not a string")
      }
      result[name] = value
    }
    return Parsed(value: .dictionary(result), size: size + count + 1)
  }
}
