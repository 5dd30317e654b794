/// A number of bytes as people write it: `16MiB`, `500kB`, `4096`.
package struct ByteSize: Equatable, Sendable {
  package var bytes: Int64

  private static let units: [(suffix: String, bytes: Int64)] = [
    ("KIB", 1 << 10), ("MIB", 1 << 20), ("GIB", 1 << 30), ("TIB", 1 << 40),
    ("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000),
    ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40), ("B", 1),
  ]

  package init(bytes: Int64) { self.bytes = bytes }

  /// Nil for anything but a positive whole number with at most one unit.
  package init?(_ text: String) {
    let text = text.uppercased()
    let unit = Self.units.first { text.hasSuffix($0.suffix) }
    let digits = text.dropLast(unit?.suffix.count ?? 0).trimmingSuffix(while: { $0 == " " })
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let number = Int64(digits), number > 0
    else { return nil }
    let (bytes, isLarge) = number.multipliedReportingOverflow(by: unit?.bytes ?? 1)
    guard !isLarge else { return nil }
    self.bytes = bytes
  }

  /// For people: three digits and a binary unit.
  package static func text(_ bytes: Int64) -> String {
    var value = Double(bytes)
    var place = 0
    let names = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024, place < names.count - 1 {
      value /= 1024
      place += 1
    }
    if place == 0 { return "\(bytes) bytes" }
    let tenths = (value * 10).rounded() / 10
    return (tenths >= 100 || tenths == tenths.rounded() ? "\(Int(tenths.rounded()))" : "\(tenths)")
      + " " + names[place]
  }
}

extension Substring {
  fileprivate func trimmingSuffix(while isTrimmed: (Character) -> Bool) -> Substring {
    var rest = self
    while let last = rest.last, isTrimmed(last) { rest.removeLast() }
    return rest
  }
}
