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

  @Test func `is read without a WAL of an unknown version that lies there, too`() throws {
    let patient = try Patient(rows: 400)
    try kill(patient) { _ in }
    var log: [UInt32] = [0x377F_0682, 3_007_001, 4096, 0, 1, 2]
    var sums: (UInt32, UInt32) = (0, 0)
    for place in stride(from: 0, to: log.count, by: 2) {
      sums.0 = sums.0 &+ log[place].byteSwapped &+ sums.1
      sums.1 = sums.1 &+ log[place + 1].byteSwapped &+ sums.0
    }
    log += [sums.0, sums.1] + Array(repeating: 0, count: 1030)
    let bytes = log.flatMap { word in
      [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
    }
    try Data(bytes).write(to: URL(fileURLWithPath: patient.store + "-wal"))
    let report = try patient.repair()
    #expect(
      report.lost.contains { $0.subject == .file && $0.message.contains("3007001") })
    #expect(report.doubtful.isEmpty)
    #expect(try patient.read("SELECT 1 FROM ZRECIPE WHERE Z_OPT = 77", of: patient.output) == [])
  }
}
