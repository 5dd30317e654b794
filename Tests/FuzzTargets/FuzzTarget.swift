import Foundation

/// A parser of bytes that others wrote, and what must hold for any bytes: it ends, in bounded memory,
/// with a value or an error that can be described. A trap, a hang or a broken `precondition` below
/// is a defect of the parser.
///
/// The fuzzer calls these with inputs of its own; the unit tests with those that it once found.
package enum FuzzTarget: String, CaseIterable, Sendable {
  /// Binary and XML property lists.
  case propertyList = "property-list"
  /// NSKeyedArchiver graphs.
  case keyedArchive = "keyed-archive"
  /// `contents` of an `.xcdatamodel`.
  case modelXML = "model-xml"
  /// `.mom` files, and `Z_MODELCACHE` of a store.
  case modelArchive = "model-archive"
  /// Mapping models as YAML.
  case mappingText = "mapping-text"
  /// `xcmapping.xml`.
  case mappingXML = "mapping-xml"
  /// `.cdm` files.
  case mappingArchive = "mapping-archive"
  /// Value expressions and predicates.
  case expression
  /// `pipeline.yaml`.
  case pipeline
  /// Checkpoints, and the rows inside.
  case checkpoint
  /// `journal.json` of a run directory.
  case journal
  /// SQLite's rollback journals.
  case rollbackJournal = "rollback-journal"
  /// SQLite's WALs.
  case wal
  /// Records of SQLite's format.
  case record
  /// Pages of a table, read past SQLite.
  case pages
  /// Pages of a damaged database, as a repair reads them.
  case damagedPages = "damaged-pages"

  /// Parses the bytes. What it throws is caught here: an error is a right answer.
  package func run(_ bytes: [UInt8]) {
    do {
      switch self {
      case .propertyList: try ArchiveTargets.propertyList(bytes)
      case .keyedArchive: try ArchiveTargets.keyedArchive(bytes)
      case .modelXML: try ModelTargets.xml(bytes)
      case .modelArchive: try ModelTargets.archive(bytes)
      case .mappingText: try MappingTargets.document(bytes, startingWith: nil)
      case .mappingXML: try MappingTargets.document(bytes, startingWith: "<")
      case .mappingArchive: try MappingTargets.document(bytes, startingWith: "bplist")
      case .expression: try MappingTargets.expression(bytes)
      case .pipeline: try FileTargets.pipeline(bytes)
      case .checkpoint: try CheckpointTarget.run(bytes)
      case .journal: try FileTargets.journal(bytes)
      case .rollbackJournal: try FileTargets.rollbackJournal(bytes)
      case .wal: try FileTargets.wal(bytes)
      case .record: FileTargets.record(bytes)
      case .pages: try FileTargets.pages(bytes)
      case .damagedPages: try FileTargets.damagedPages(bytes)
      }
    } catch {
      // What is said about a bad input is made from it, too.
      hold("an error says something", !String(describing: error).isEmpty)
    }
  }
}

/// A claim about any input; ends the process where it does not hold, in a release build, too.
func hold(_ claim: String, _ condition: Bool) {
  if !condition { fatalError("does not hold: \(claim)") }
}

/// Something that must not throw, since the parser accepted what it is made from.
func certain<Value>(_ claim: String, _ body: () throws -> Value) -> Value {
  do {
    return try body()
  } catch {
    fatalError("does not hold: \(claim): \(error)")
  }
}
