/// Values of attributes as `contents` files spell them.
enum AttributeText {
  static func defaultText(of attribute: AttributeDescription) -> String? {
    switch (attribute.type, attribute.defaultValue) {
    case (_, nil): return nil
    case (.boolean, .integer(let number)?): return number == 0 ? "NO" : "YES"
    case (.float, .real(let number)?): return "\(Float(number))"
    case (.double, .integer(let number)?), (.float, .integer(let number)?):
      return "\(Double(number))"
    case (_, .integer(let number)?): return "\(number)"
    case (_, .real(let number)?): return "\(number)"
    case (_, .text(let text)?): return text
    case (.uuid, .blob(let bytes)?): return uuid(bytes)
    case (_, .blob?): return nil
    }
  }

  private static func uuid(_ bytes: [UInt8]) -> String {
    var text = ""
    for (place, byte) in bytes.enumerated() {
      if bytes.count == 16, [4, 6, 8, 10].contains(place) { text += "-" }
      text += (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }
    return text
  }
}
