/// Writes the binary form of a property list, version 00; see ``BinaryPropertyListReader``.
///
/// Objects are numbered from the top downwards, a container before its content. Equal scalars
/// are written once, as Core Foundation does it. The same value always gives the same bytes.
struct BinaryPropertyListWriter {
  private enum Entry {
    case scalar(PropertyList)
    case array([Int])
    case set([Int])
    case dictionary(keys: [Int], values: [Int])
  }

  private var entries: [Entry] = []
  /// What tells scalars apart in the file: bits and bytes. Swift's `==` holds two spellings of
  /// one accented letter equal, and −0 and 0.
  private enum Identity: Hashable {
    case text([UInt8])
    case real(UInt64)
    case date(UInt64)
    case other(PropertyList)

    init(_ value: PropertyList) {
      switch value {
      case .string(let text): self = .text(Array(text.utf8))
      case .real(let number): self = .real(number.bitPattern)
      case .date(let seconds): self = .date(seconds.bitPattern)
      default: self = .other(value)
      }
    }
  }
  private var scalars: [Identity: Int] = [:]

  static func write(_ value: PropertyList) -> [UInt8] {
    var writer = BinaryPropertyListWriter()
    _ = writer.number(of: value)
    return writer.bytes()
  }

  private mutating func number(of value: PropertyList) -> Int {
    switch value {
    case .array(let values), .set(let values):
      let place = entries.count
      entries.append(.array([]))
      let references = values.map { number(of: $0) }
      if case .set = value {
        entries[place] = .set(references)
      } else {
        entries[place] = .array(references)
      }
      return place
    case .dictionary(let dictionary):
      let place = entries.count
      entries.append(.array([]))
      let keys = dictionary.keys.map { number(of: .string($0)) }
      entries[place] = .dictionary(keys: keys, values: dictionary.values.map { number(of: $0) })
      return place
    default:
      let identity = Identity(value)
      if let known = scalars[identity] { return known }
      entries.append(.scalar(value))
      scalars[identity] = entries.count - 1
      return entries.count - 1
    }
  }

  private func bytes() -> [UInt8] {
    var output = Array("bplist00".utf8)
    let referenceSize = Self.width(UInt64(entries.count))
    var offsets: [Int] = []
    offsets.reserveCapacity(entries.count)
    for entry in entries {
      offsets.append(output.count)
      switch entry {
      case .scalar(let value): Self.append(value, to: &output)
      case .array(let references):
        Self.append(kind: 0xA0, size: references.count, to: &output)
        for reference in references {
          Self.append(UInt64(reference), size: referenceSize, to: &output)
        }
      case .set(let references):
        Self.append(kind: 0xC0, size: references.count, to: &output)
        for reference in references {
          Self.append(UInt64(reference), size: referenceSize, to: &output)
        }
      case .dictionary(let keys, let values):
        Self.append(kind: 0xD0, size: keys.count, to: &output)
        for reference in keys + values {
          Self.append(UInt64(reference), size: referenceSize, to: &output)
        }
      }
    }
    let table = output.count
    let offsetSize = Self.width(UInt64(table))
    for offset in offsets { Self.append(UInt64(offset), size: offsetSize, to: &output) }
    output += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    Self.append(UInt64(entries.count), size: 8, to: &output)
    Self.append(0, size: 8, to: &output)
    Self.append(UInt64(table), size: 8, to: &output)
    return output
  }

  /// 1, 2, 4 or 8: the bytes that `value` needs.
  private static func width(_ value: UInt64) -> Int {
    switch value {
    case ...0xFF: 1
    case ...0xFFFF: 2
    case ...0xFFFF_FFFF: 4
    default: 8
    }
  }

  private static func append(_ value: UInt64, size: Int, to output: inout [UInt8]) {
    for shift in (0..<size).reversed() {
      output.append(UInt8(truncatingIfNeeded: value >> UInt64(shift * 8)))
    }
  }

  private static func append(kind: UInt8, size: Int, to output: inout [UInt8]) {
    guard size >= 15 else {
      output.append(kind | UInt8(size))
      return
    }
    output.append(kind | 15)
    appendInteger(Int64(size), to: &output)
  }

  private static func appendInteger(_ value: Int64, to output: inout [UInt8]) {
    let size = value < 0 ? 8 : width(UInt64(value))
    output.append(0x10 | UInt8(size.trailingZeroBitCount))
    append(UInt64(bitPattern: value), size: size, to: &output)
  }

  private static func append(_ units: [UInt16], to output: inout [UInt8]) {
    append(kind: 0x60, size: units.count, to: &output)
    for unit in units { append(UInt64(unit), size: 2, to: &output) }
  }

  private static func append(_ value: PropertyList, to output: inout [UInt8]) {
    switch value {
    case .boolean(let flag): output.append(flag ? 9 : 8)
    case .integer(let number): appendInteger(number, to: &output)
    case .wideInteger(let number):
      output.append(0x14)
      append(UInt64(truncatingIfNeeded: number >> 64), size: 8, to: &output)
      append(UInt64(truncatingIfNeeded: number), size: 8, to: &output)
    case .real(let number):
      output.append(0x23)
      append(number.bitPattern, size: 8, to: &output)
    case .date(let seconds):
      output.append(0x33)
      append(seconds.bitPattern, size: 8, to: &output)
    case .data(let bytes):
      append(kind: 0x40, size: bytes.count, to: &output)
      output += bytes
    case .string(let text):
      if text.utf8.allSatisfy({ $0 < 0x80 }) {
        append(kind: 0x50, size: text.utf8.count, to: &output)
        output += text.utf8
      } else {
        append(Array(text.utf16), to: &output)
      }
    case .unpairedText(let units): append(units, to: &output)
    case .uid(let number):
      let size = width(UInt64(number))
      output.append(0x80 | UInt8(size - 1))
      append(UInt64(number), size: size, to: &output)
    case .array, .set, .dictionary:
      break  // containers are entries of their own, never scalars
    }
  }
}
