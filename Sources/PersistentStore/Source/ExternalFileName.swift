import GodwitDigests
import GodwitDurableFiles
import SystemPackage

/// The names of files of external binary data that a migration writes: UUIDs in capitals.
///
/// The first half of a name follows from what the file is written for, the second half from the first
/// and the file's bytes. So a shard that runs twice gives the same names, and a file that was cut off,
/// changed or exchanged with another since it was written does not fit its name.
package enum ExternalFileName {
  private static let halfBytes = 8

  /// - Parameter subject: What no other value of the store has.
  package static func name(of subject: [UInt8], _ value: UnsafeRawBufferPointer) -> String {
    var digest = FileDigest()
    for start in stride(from: 0, to: value.count, by: FileDigest.pieceBytes) {
      let end = min(start + FileDigest.pieceBytes, value.count)
      digest.add(UnsafeRawBufferPointer(rebasing: value[start..<end]))
    }
    return name(head(of: subject), digest.finish())
  }

  /// The name of a copy of a file.
  package static func name(of subject: [UInt8], copying file: FilePath) throws -> String {
    name(head(of: subject), try FileDigest.text(of: file))
  }

  /// Whether a file holds what was written under its name.
  package static func fits(_ file: FilePath) throws -> Bool {
    guard let name = file.lastComponent?.string,
      let bytes = Hexadecimal.bytes(of: name.filter { $0 != "-" }), bytes.count == 2 * halfBytes
    else { return false }
    return Self.name(Array(bytes.prefix(halfBytes)), try FileDigest.text(of: file)) == name
  }

  private static func head(of subject: [UInt8]) -> [UInt8] {
    Array(SHA256.digest(of: subject).prefix(halfBytes))
  }

  private static func name(_ head: [UInt8], _ content: String) -> String {
    let tail = SHA256.digest(of: head + Array(content.utf8)).prefix(halfBytes)
    var name = ""
    for (index, digit) in Hexadecimal.text(of: head + tail).uppercased().enumerated() {
      if [8, 12, 16, 20].contains(index) { name.append("-") }
      name.append(digit)
    }
    return name
  }
}

extension FileDigest {
  /// The digest of a file as it is now.
  package static func text(of file: FilePath) throws -> String {
    var digest = FileDigest()
    try RegularFile.forEachPiece(of: file, byteCount: pieceBytes) { digest.add($0) }
    return digest.finish()
  }
}
