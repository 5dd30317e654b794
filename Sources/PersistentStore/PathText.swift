import Glibc
import GodwitDigests
import SystemPackage

extension FilePath {
  /// The path as text that stands for no other path: itself where it is UTF-8, and else as a shell would take
  /// it, `$'/srv/a\xff'`. A whole path begins with a slash, so the two are never mixed up.
  package var unambiguousText: String {
    if let text = String(validating: self) { return text }
    let bytes = withPlatformString { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    var text = "$'"
    var parser = Unicode.UTF8.ForwardParser()
    var (input, place) = (bytes.makeIterator(), 0)
    while true {
      switch parser.parseScalar(from: &input) {
      case .valid(let encoded):
        let scalar = Unicode.UTF8.decode(encoded)
        if scalar == "\\" || scalar == "'" { text += "\\" }
        text.unicodeScalars.append(scalar)
        place += encoded.count
      case .error(let length):
        for byte in bytes[place..<(place + length)] {
          text += "\\x" + Hexadecimal.text(of: [byte])
        }
        place += length
      case .emptyInput: return text + "'"
      }
    }
  }
}
