import GodwitPersistentStore
import GodwitSQLite

/// Rows of `Z_METADATA` beside the one that counts: Core Data writes one.
struct FurtherMetadata {
  /// With the same content as that one.
  var same: Int64 = 0
  var others: Int64 = 0
}

extension StoreSalvage {
  /// Takes all rows from `Z_METADATA` but the one with the fewest faults, of several such the first.
  static func leaveOneMetadata(in salvage: Connection) throws -> FurtherMetadata {
    var further = FurtherMetadata()
    guard try salvage.holds(["Z_UUID", "Z_PLIST"], in: "Z_METADATA") else { return further }
    let rows = try salvage.prepare(
      "SELECT rowid, Z_UUID, Z_PLIST FROM Z_METADATA ORDER BY rowid")
    var best: (row: Int64, faults: (Int, Int))?
    while try rows.step() {
      let metadata = StoreMetadata(uuid: rows.value(1), list: rows.value(2))
      // Version hashes tell the model, which the other keys do not.
      let lacks = [metadata.plist.isEmpty, metadata.versionHashes.isEmpty].count { $0 }
      let faults = (lacks, metadata.problems.count)
      if best.map({ faults < $0.faults }) ?? true { best = (rows.int64(0), faults) }
    }
    guard let best else { return further }
    try salvage.execute(
      """
      DELETE FROM Z_METADATA
       WHERE rowid <> \(best.row) AND (Z_UUID, Z_PLIST) IS (
               SELECT Z_UUID, Z_PLIST FROM Z_METADATA WHERE rowid = \(best.row))
      """)
    further.same = salvage.changes
    try salvage.execute("DELETE FROM Z_METADATA WHERE rowid <> \(best.row)")
    further.others = salvage.changes
    return further
  }
}
