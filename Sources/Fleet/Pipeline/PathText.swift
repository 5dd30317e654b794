import SystemPackage

extension FilePath {
  /// The path as text that stands for no other path: itself where it is UTF-8, and else as a shell would take
  /// it, `$'/srv/a\xff'`. A whole path begins with a slash, so the two are never mixed up.
  package var unambiguousText: String {
    if let text = String(validating: self) { return text }
    let bytes = withPlatformString {
      Array(UnsafeBufferPointer(start: $0, count: platformLength($0)))
    }
    .map { UInt8(bitPattern: $0) }
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
          text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        place += length
      case .emptyInput: return text + "'"
      }
    }
  }

  private func platformLength(_ text: UnsafePointer<CInterop.PlatformChar>) -> Int {
    var count = 0
    while text[count] != 0 { count += 1 }
    return count
  }
}
