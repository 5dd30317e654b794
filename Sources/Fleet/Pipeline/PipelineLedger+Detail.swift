import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

// What lines say for people alone. A fleet of large models has more of it than a coordinator may hold: it stays in
// the file, and is read again for a result that a later start gives.
extension PipelineLedger {
  /// The rest of what was said of a store that was migrated, or failed. Fields may be added to and never change
  /// meaning.
  struct Detail: Codable, Sendable, Equatable {
    var counts: [String: Int64]?
    var path: [String]?
    var findings: [StoreFinding]?
    var notes: [String]?
    var lostRights: LostRights?
    /// Of a failure, all of them with their places.
    var reasons: [Reason]?

    /// Nil for any other store: it is looked at again.
    init?(_ result: MigrationResult) {
      guard result.verdict == .migrated || result.isFailure else { return nil }
      reasons = result.isFailure ? result.reasons : nil
      (counts, path) = (result.counts, result.path)
      findings = result.findings.isEmpty ? nil : result.findings
      notes = result.notes.isEmpty ? nil : result.notes
      lostRights = result.lostRights
    }
  }

  /// What is known of a store while a start lasts.
  struct Known: Sendable {
    /// An entry has a thousand bytes, and a table of entries keeps room for as many again.
    private final class Held: Sendable {
      let entry: Entry

      init(_ entry: Entry) { self.entry = entry }
    }

    private let held: Held
    /// The line, where it may have a ``Detail``.
    var place: GroupedLog.Place?
    /// Whether it is from before the start that was to forget it.
    var isForgotten: Bool

    init(entry: Entry, place: GroupedLog.Place?, isForgotten: Bool = false) {
      held = Held(entry)
      (self.place, self.isForgotten) = (place, isForgotten)
    }

    var entry: Entry { held.entry }

    var withoutHistory: Known {
      Known(entry: entry.withoutHistory, place: place, isForgotten: isForgotten)
    }
  }

  /// A line as it is written: the entry's fields, and `detail`.
  struct Line: Encodable {
    var entry: Entry
    var detail: Detail?

    /// With a digest: nothing else may tell of a backup, and each key of an entry may be missing.
    var text: String {
      get throws { String(decoding: try SealedJSON.bytes(of: self), as: UTF8.self) }
    }

    private enum CodingKeys: CodingKey { case detail }

    func encode(to encoder: any Encoder) throws {
      try entry.encode(to: encoder)
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encodeIfPresent(detail, forKey: .detail)
    }
  }

  private struct DetailOfLine: Decodable {
    var store: String
    var detail: Detail?
  }

  /// Every line, one after the other, with its place. Those that are not whole, as a crash leaves one, are nobody's;
  /// a power cut may leave one of any length.
  ///
  /// - Returns: How many whole ones are not as they were written, or of a later version.
  @discardableResult
  static func forEachEntry(
    in file: FilePath, _ body: (Entry, GroupedLog.Place) throws -> Void
  ) throws -> Int {
    guard try FileKind(at: file) != .none else { return 0 }
    let descriptor = try RegularFile.open(file, isPrivate: true)
    defer { try? descriptor.close() }
    var lines = LineReader(descriptor, mostBytes: lineLimit, passesOver: true)
    var start: Int64 = 0
    var damaged = 0
    do {
      while let line = try lines.next() {
        let place = GroupedLog.Place(start: start, count: line.count)
        start = lines.offset
        guard let entry = try? SealedJSON.value(Entry.self, ofSealedOrPlain: line) else {
          if line.suffix(2).elementsEqual("\"}".utf8) { damaged += 1 }
          continue
        }
        try body(entry, place)
      }
    } catch let error as Errno {
      throw DurabilityError.failed(call: "read", path: file, error)
    }
    return damaged
  }

  /// What to say of lines of stores that the ledger may lack.
  static func damageText(of lines: Int, in file: FilePath) -> String {
    "\(lines == 1 ? "1 line of \(file) is" : "\(lines) lines of \(file) are") not as written: what earlier starts "
      + "made of as many stores may not be known, and backups of them may be in no ledger. `godwit backups list` "
      + "names those, and `godwit verify` looks at the stores. Check the disk."
  }

  /// What to say of the progress in a state folder, where the ledger lacks it; nil of sound progress.
  static func damageText(inState folder: FilePath) throws -> String? {
    let damaged = try forEachEntry(in: logFile(folder)) { _, _ in }
    return damaged == 0 ? nil : damageText(of: damaged, in: logFile(folder))
  }

  /// What the line of a store says beside its entry; nil where it says nothing else, or is another's.
  static func detail(
    of store: FilePath, at place: GroupedLog.Place, in file: FilePath
  ) throws -> Detail? {
    let descriptor = try RegularFile.open(file, isPrivate: true)
    defer { try? descriptor.close() }
    return try detail(of: store, at: place, descriptor)
  }

  private static func detail(
    of store: FilePath, at place: GroupedLog.Place, _ file: FileDescriptor
  ) throws -> Detail? {
    let line = try [UInt8](unsafeUninitializedCapacity: place.count) { bytes, count in
      while count < place.count {
        let rest = UnsafeMutableRawBufferPointer(
          rebasing: UnsafeMutableRawBufferPointer(bytes)[count...])
        let read = try file.read(
          fromAbsoluteOffset: place.start + Int64(count), into: rest)
        if read == 0 { return }
        count += read
      }
    }
    let found = try? JSONDecoder().decode(DetailOfLine.self, from: Data(line))
    return found?.store == store.string ? found?.detail : nil
  }

  /// Writes the file anew. Of a store that was replaced at its place a new run says that it is of the destination's
  /// version, and nothing of how it came to that.
  ///
  /// - Returns: The same, at their new places.
  static func write(
    _ lines: [FilePath: Known], to file: FilePath
  ) throws -> [FilePath: Known] {
    guard try !lines.isEmpty || FileKind(at: file) != .none else {
      try DurableFile.write([], to: file)
      return [:]
    }
    let earlier = try RegularFile.open(file, isPrivate: true)
    defer { try? earlier.close() }
    var written: [FilePath: Known] = [:]
    var pending = try PendingFile(for: file)
    var bytes: [UInt8] = []
    var start: Int64 = 0
    for (store, known) in lines.sorted(by: { $0.value.entry.store < $1.value.entry.store }) {
      let isOutput = known.entry.verdict == .migrated && known.entry.backup == nil
      var detail: Detail?
      if isOutput, let place = known.place {
        detail = try Self.detail(of: store, at: place, earlier)
      }
      let text = try Line(entry: known.entry, detail: detail).text.utf8
      written[store] = known
      written[store]?.place =
        detail == nil ? nil : GroupedLog.Place(start: start, count: text.count)
      start += Int64(text.count) + 1
      bytes += text
      bytes.append(UInt8(ascii: "\n"))
      guard bytes.count >= 1 << 16 else { continue }
      try bytes.withUnsafeBytes { try pending.write($0) }
      bytes.removeAll(keepingCapacity: true)
    }
    try bytes.withUnsafeBytes { try pending.write($0) }
    try pending.publish(surviving: .powerCut)
    return written
  }
}
