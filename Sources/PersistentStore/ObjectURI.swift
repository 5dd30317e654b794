/// The URI of an object, as `-[NSManagedObjectID URIRepresentation]` has it:
/// `x-coredata://STORE/ENTITY/pKEY`.
///
/// Source: `core-data-migration.md` §5.4 ("Object identity").
package enum ObjectURI {
  /// All but the key.
  ///
  /// - Parameters:
  ///   - store: The store's UUID.
  ///   - entity: Percent-encoded where RFC 3986 does not allow a character in a segment of a path.
  package static func prefix(store: String, entity: String) -> String {
    var segment = ""
    for byte in entity.utf8 {
      if isAllowed(byte) {
        segment.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        segment += digits.utf8.count == 1 ? "%0" + digits : "%" + digits
      }
    }
    return "x-coredata://\(store)/\(segment)/p"
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "-._~!$&'()*+,;=:@".utf8.contains(byte)
    }
  }
}
