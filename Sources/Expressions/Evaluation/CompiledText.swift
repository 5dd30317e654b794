import GodwitSQLite

/// What a compiled expression does to a text.
enum CompiledTextOperation: UInt8, BitwiseCopyable {
  case uppercase, lowercase
  /// In UTF-16 units, as NSString counts.
  case length

  init?(function: String) {
    switch function {
    case "uppercase:": self = .uppercase
    case "lowercase:": self = .lowercase
    case "length:": self = .length
    default: return nil
    }
  }
}

/// Changes texts of rows, on their bytes. One for each place of an expression that does.
///
/// Every result is that of Swift's `String`, scalar by scalar. Its own way costs a string for each
/// scalar that is not ASCII; here a table tells, which is made a page at a time when a script first
/// appears. A text that is not UTF-8 is an error, as it is to the evaluator.
final class CompiledText {
  private static let pageCount = 0x11_0000 >> 8
  /// A scalar that becomes several.
  private static let several = UInt32.max

  private let operation: CompiledTextOperation
  /// Scalar → scalar, 256 each.
  private let pages: UnsafeMutablePointer<UnsafeMutablePointer<UInt32>?>
  @exclusivity(unchecked) private var buffer = RawBuffer(capacity: 256)

  init(_ operation: CompiledTextOperation) {
    self.operation = operation
    pages = .allocate(capacity: Self.pageCount)
    pages.initialize(repeating: nil, count: Self.pageCount)
  }

  deinit {
    for place in 0..<Self.pageCount { pages[place]?.deallocate() }
    pages.deallocate()
  }

  /// - Returns: An integer for a length; else a text in this instance's memory, until the next call.
  func apply(_ value: RawValue) throws(EvaluationProblem) -> RawValue {
    guard value.kind == .text else { return .null }
    let text = value.buffer
    if operation == .length {
      guard let units = Self.units(of: text) else { throw .unexpectedStorage(.string) }
      return .integer(units)
    }
    guard map(text) else { throw .unexpectedStorage(.string) }
    guard buffer.count <= EvaluationLimits.bytes else {
      throw .tooLarge(what: "bytes of text", limit: EvaluationLimits.bytes)
    }
    return .text(UnsafeRawPointer(buffer.base), count: buffer.count)
  }

  /// nil for bytes that are no valid UTF-8.
  private static func units(of text: UnsafeRawBufferPointer) -> Int64? {
    guard let base = text.baseAddress else { return 0 }
    var (place, units) = (0, Int64(0))
    while place < text.count {
      if base.load(fromByteOffset: place, as: UInt8.self) < 0x80 {
        place &+= 1
        units &+= 1
        continue
      }
      let scalar = UTF8Scalar(base + place, count: text.count - place)
      guard scalar.length > 0 else { return nil }
      place &+= scalar.length
      units &+= scalar.value > 0xFFFF ? 2 : 1
    }
    return units
  }

  /// Fills the buffer; false for bytes that are no valid UTF-8.
  private func map(_ text: UnsafeRawBufferPointer) -> Bool {
    buffer.removeAll()
    guard let base = text.baseAddress else { return true }
    // Most texts keep their length; the buffer grows for those that do not.
    buffer.reserve(text.count)
    let isUpper = operation == .uppercase
    let first: UInt8 = isUpper ? UInt8(ascii: "a") : UInt8(ascii: "A")
    var place = 0
    while place < text.count {
      while text.count &- place >= 8 {
        let word = base.loadUnaligned(fromByteOffset: place, as: UInt64.self)
        guard word & 0x8080_8080_8080_8080 == 0 else { break }
        buffer.append(number: Self.turned(word, from: first))
        place &+= 8
      }
      guard place < text.count else { break }
      let byte = base.load(fromByteOffset: place, as: UInt8.self)
      if byte < 0x80 {
        buffer.append(byte &- first < 26 ? byte ^ 0x20 : byte)
        place &+= 1
        continue
      }
      let scalar = UTF8Scalar(base + place, count: text.count - place)
      guard scalar.length > 0 else { return false }
      let mapped = mapped(scalar.value)
      if mapped == scalar.value {
        buffer.append(UnsafeRawBufferPointer(start: base + place, count: scalar.length))
      } else {
        append(mapped, of: scalar.value)
      }
      place &+= scalar.length
    }
    return true
  }

  /// Eight ASCII letters at once: bit 7 of each byte tells those from `first` on and those after
  /// the last letter; where they differ is a letter to turn.
  @inline(__always)
  private static func turned(_ word: UInt64, from first: UInt8) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let fromFirst = word &+ ones &* UInt64(0x80 - first)
    let afterLast = word &+ ones &* UInt64(0x80 - first - 26)
    return word ^ ((fromFirst ^ afterLast) & (ones << 7)) >> 2
  }

  @inline(__always)
  private func mapped(_ scalar: UInt32) -> UInt32 {
    let page = pages[Int(scalar >> 8)] ?? makePage(Int(scalar >> 8))
    return page[Int(scalar & 0xFF)]
  }

  private func makePage(_ number: Int) -> UnsafeMutablePointer<UInt32> {
    let page = UnsafeMutablePointer<UInt32>.allocate(capacity: 256)
    for place in 0..<256 {
      let value = UInt32(number << 8 | place)
      (page + place).initialize(to: value)
      guard let scalar = Unicode.Scalar(value) else { continue }
      let mapped = mapping(of: scalar).unicodeScalars
      page[place] = mapped.count == 1 ? mapped.first?.value ?? value : Self.several
    }
    pages[number] = page
    return page
  }

  private func mapping(of scalar: Unicode.Scalar) -> String {
    operation == .uppercase
      ? scalar.properties.uppercaseMapping : scalar.properties.lowercaseMapping
  }

  private func append(_ mapped: UInt32, of scalar: UInt32) {
    if mapped == Self.several {
      if let scalar = Unicode.Scalar(scalar) { buffer.append(Array(mapping(of: scalar).utf8)) }
    } else if let scalar = Unicode.Scalar(mapped) {
      for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { buffer.append(byte) }
    }
  }
}

/// The scalar at the start of some bytes, which begin with one that is not ASCII.
///
/// Source: the Unicode Standard, table 3-7, "Well-Formed UTF-8 Byte Sequences".
private struct UTF8Scalar {
  var value: UInt32 = 0
  /// Bytes; 0 where they are no scalar.
  var length = 0

  @inline(__always)
  init(_ bytes: UnsafeRawPointer, count: Int) {
    func byte(_ place: Int) -> UInt32 {
      UInt32(bytes.load(fromByteOffset: place, as: UInt8.self))
    }
    let lead = byte(0)
    let size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2
    guard lead >= 0xC2, lead <= 0xF4, count >= size else { return }
    var result = lead & (0x7F >> UInt32(size))
    for place in 1..<size {
      let next = byte(place)
      guard next & 0xC0 == 0x80 else { return }
      result = result << 6 | next & 0x3F
    }
    // Overlong forms, surrogates, and what lies beyond the last scalar.
    guard
      size == 2 || size == 3 && result >= 0x800 && result & 0xFFFF_F800 != 0xD800
        || size == 4 && result >= 0x1_0000 && result <= 0x10_FFFF
    else { return }
    (value, length) = (result, size)
  }
}
