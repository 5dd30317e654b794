import Foundation
import GodwitKeyedArchive

/// What the value sources of a store share: the random numbers, the words, the room for a row.
final class ValueTools {
  var random: SplitMix64
  let arena = RowArena()
  let text: TextPool
  let plainText: TextPool
  /// A small keyed archive, and the bytes of it that may be any letters.
  let archive: [UInt8]
  let archiveLetters: Range<Int>?
  private(set) var externalFiles = 0
  private let externalFolder: URL
  private var digitsBuffer: [UInt8] = []

  static let uriStart = Array("https://example.com/a%20b?page=".utf8)
  private static let placeholder = "qzqzqzqz"

  /// - Parameter externalFolder: Made when the first file is written.
  init(options: StoreOptions, externalFolder: URL) {
    random = SplitMix64(seed: options.seed)
    text = TextPool(unicode: options.unicodeText, seed: options.seed)
    plainText = options.unicodeText ? TextPool(unicode: false, seed: options.seed) : text
    self.externalFolder = externalFolder
    var writer = KeyedArchiveWriter()
    let bytes = writer.collection([writer.string(Self.placeholder), writer.string("fixture")])
    let archive = writer.bytes(root: bytes)
    self.archive = archive
    let wanted = Array(Self.placeholder.utf8)
    archiveLetters = archive.indices.first { archive[$0...].starts(with: wanted) }.map {
      $0..<($0 + wanted.count)
    }
  }

  /// A version 4 UUID.
  func uuidBytes(into place: UnsafeMutableRawPointer) {
    place.storeBytes(of: random.next().littleEndian, as: UInt64.self)
    place.storeBytes(of: random.next().littleEndian, toByteOffset: 8, as: UInt64.self)
    let version = place.load(fromByteOffset: 6, as: UInt8.self) & 0x0F | 0x40
    let variant = place.load(fromByteOffset: 8, as: UInt8.self) & 0x3F | 0x80
    place.storeBytes(of: version, toByteOffset: 6, as: UInt8.self)
    place.storeBytes(of: variant, toByteOffset: 8, as: UInt8.self)
  }

  /// 36 upper-case characters.
  func uuidText() -> String {
    var bytes = [UInt8](repeating: 0, count: 16)
    bytes.withUnsafeMutableBytes {
      if let base = $0.baseAddress { uuidBytes(into: base) }
    }
    var text = ""
    for (index, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(index) { text += "-" }
      text += byte < 16 ? "0" : ""
      text += String(byte, radix: 16, uppercase: true)
    }
    return text
  }

  /// A number to base 36: distinct numbers give distinct text. Valid until the next call.
  func digits(of number: Int) -> [UInt8] {
    digitsBuffer.removeAll(keepingCapacity: true)
    var rest = UInt(bitPattern: number)
    repeat {
      let digit = UInt8(rest % 36)
      digitsBuffer.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
      rest /= 36
    } while rest > 0
    digitsBuffer.reverse()
    return digitsBuffer
  }

  /// Writes a file of external data and gives its name.
  func writeExternalFile(bytes: Int) throws -> [UInt8] {
    if externalFiles == 0 {
      try FileManager.default.createDirectory(
        at: externalFolder, withIntermediateDirectories: true)
    }
    externalFiles += 1
    let name = uuidText()
    var data = [UInt8](repeating: 0, count: bytes)
    var numbers = SplitMix64(seed: random.next())
    data.withUnsafeMutableBytes { buffer in
      var offset = 0
      while offset + 8 <= buffer.count {
        buffer.storeBytes(of: numbers.next().littleEndian, toByteOffset: offset, as: UInt64.self)
        offset += 8
      }
    }
    try Data(data).write(to: externalFolder.appendingPathComponent(name))
    return Array(name.utf8)
  }
}
