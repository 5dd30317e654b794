import Foundation
import GodwitRepair
import GodwitSQLite
import Testing

@Suite struct `A store beside a rollback journal` {
  /// The store and its journal as a process leaves them that is killed in a transaction.
  private func kill(_ patient: Patient, _ change: (inout Data) -> Void) throws {
    let journal = URL(fileURLWithPath: patient.store + "-journal")
    let connection = try Connection(path: patient.store, mode: .readWrite)
    try connection.execute(
      "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; "
        + "UPDATE ZRECIPE SET Z_OPT = 77; UPDATE ZSTEP SET Z_OPT = 77")
    let store = patient.bytes
    var bytes = try Data(contentsOf: journal)
    try connection.execute("ROLLBACK")
    try connection.close()
    change(&bytes)
    patient.bytes = store
    try bytes.write(to: journal)
  }

  @Test func `is as it was before the transaction where the journal is whole`() throws {
    let patient = try Patient(rows: 400)
    try kill(patient) { _ in }
    #expect(try patient.repair().doubtful.isEmpty)
    #expect(try patient.read("SELECT 1 FROM ZRECIPE WHERE Z_OPT = 77", of: patient.output) == [])
  }

  @Test func `has a transaction in part where a record of the journal is damaged`() throws {
    let patient = try Patient(rows: 400)
    // The checksum of the first record sums up every 200th byte of its page.
    try kill(patient) { $0[512 + 4 + 4096 - 200] ^= 1 }
    #expect(
      try patient.repair().doubtful.contains {
        $0.subject == .file && $0.message.contains("a transaction is there in part")
      })
  }
}
