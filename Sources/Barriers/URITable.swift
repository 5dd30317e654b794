import GodwitCheckpoints
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import GodwitWorker
import SystemPackage

/// The table of object URIs: what every source object became, for whoever has kept its URI.
///
/// Text in UTF-8, a line for each pair of objects, fields parted by tabs. The first line names
/// the fields:
///
///     mapping       the entity mapping's name; an inferred one's is Core Data's `IEM_…_X`
///     source        x-coredata://UUID/Entity/pN of the source object
///     destination   x-coredata://UUID/Entity/pN of an object that the mapping made of it
///
/// In a mapping's name a tab, a line feed, a carriage return and a backslash are `\t`, `\n`, `\r`
/// and `\\`. Objects that were dropped or set aside have no line, objects that became several have several. The
/// same plan gives the same bytes.
///
/// Source: `core-data-migration.md` §5.4 ("Object identity"). The form of the URIs is that of
/// `-[NSManagedObjectID URIRepresentation]`.
package struct URITable: Sendable {
  /// The first line of every table, without its line feed: a file that begins otherwise is no
  /// table of ours, and is not overwritten.
  package static let header = "mapping\tsource\tdestination"

  private let plan: MigrationPlan
  private let run: RunDirectory
  private let written: FilePath
  private let isThinned: Bool

  /// - Parameters:
  ///   - written: The destination, assembled or in its place.
  ///   - isThinned: Whether objects that the stages made were taken out of it again: those have no line.
  package init(plan: MigrationPlan, run: RunDirectory, written: FilePath, isThinned: Bool = false) {
    self.plan = plan
    self.run = run
    self.written = written
    self.isThinned = isThinned
  }

  /// Writes the table durably, in the place of an earlier one. All shards must have been copied.
  ///
  /// - Returns: The number of pairs.
  @discardableResult
  package func write(to path: FilePath) throws -> Int64 {
    let destination = plan.control.storeUUID
    let source = plan.mapped?.sourceUUID ?? destination
    try DurableFile.removeUnfinished([path])
    var file = try PendingFile(for: path, permissions: [.ownerReadWrite, .groupRead, .otherRead])
    var lines = RawBuffer(capacity: Self.bufferBytes + 4096)
    lines.append(text: Self.header + "\n")
    var count: Int64 = 0
    var last: ObjectPairs.Kind?
    var prefixes = (source: [UInt8](), destination: [UInt8]())
    var objects = isThinned ? try WrittenObjects(written, plan) : nil
    try ObjectPairs(plan: plan, run: run, written: written).forEach { kind, old, new in
      if kind != last {
        last = kind
        try objects?.take(kind.destination)
        prefixes.source = Array(
          "\(Self.field(kind.mapping))\t\(ObjectURI.prefix(store: source, entity: kind.source.rawValue))"
            .utf8)
        prefixes.destination = Array(
          "\t\(ObjectURI.prefix(store: destination, entity: kind.destination.rawValue))".utf8)
      }
      guard try objects?.has(new) ?? true else { return }
      prefixes.source.withUnsafeBytes { lines.append($0) }
      lines.append(decimal: old)
      prefixes.destination.withUnsafeBytes { lines.append($0) }
      lines.append(decimal: new)
      lines.append(UInt8(ascii: "\n"))
      count += 1
      if lines.count >= Self.bufferBytes {
        try file.write(lines.bytes)
        lines.removeAll()
      }
    }
    try file.write(lines.bytes)
    try file.publish()
    return count
  }

  /// 64 KiB: one write for some thousand lines.
  static let bufferBytes = 64 << 10

  /// The source object of a table's first line; nil where the table has none.
  package static func firstObject(in path: FilePath) throws -> String? {
    let file = try RegularFile.open(path)
    let bytes = try file.closeAfter {
      var bytes = [UInt8](repeating: 0, count: bufferBytes)
      let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
      return bytes.prefix(count)
    }
    let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 2)
    guard lines.count > 1 else { return nil }
    let fields = lines[1].split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
    return fields.count > 1 ? String(decoding: fields[1], as: UTF8.self) : nil
  }

  static func field(_ text: String) -> String {
    text.replacingSigns { scalar in
      switch scalar {
      case "\t": "\\t"
      case "\n": "\\n"
      case "\r": "\\r"
      case "\\": "\\\\"
      default: nil
      }
    }
  }
}

/// The objects that the destination has.
private struct WrittenObjects {
  private let store: Connection
  private let layout: StoreLayout
  private var ofEntity: Statement?

  init(_ written: FilePath, _ plan: MigrationPlan) throws {
    store = try Connection(path: written.string, mode: .immutable)
    try store.execute("PRAGMA cache_size = -8192")
    layout = StoreLayout(try plan.control.hierarchy())
  }

  mutating func take(_ entity: EntityName) throws {
    ofEntity = try layout.table(of: entity).map {
      try store.prepare("SELECT 1 FROM \(quoted($0.name)) WHERE Z_PK = ?1")
    }
  }

  func has(_ key: Int64) throws -> Bool {
    guard let ofEntity else { return false }
    try ofEntity.bind(1, key)
    defer { ofEntity.reset() }
    return try ofEntity.step()
  }
}

extension RawBuffer {
  fileprivate mutating func append(text: String) {
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  /// Appends a number's digits, with a sign where it is negative.
  fileprivate mutating func append(decimal number: Int64) {
    if number < 0 { append(UInt8(ascii: "-")) }
    var rest = number.magnitude
    // 20 digits hold every 64-bit number.
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
      var place = 20
      repeat {
        place -= 1
        digits[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      append(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(digits)[place...]))
    }
  }
}
