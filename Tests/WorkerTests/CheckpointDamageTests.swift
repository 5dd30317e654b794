import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitObjectModel
import GodwitPlanning
import Testing

@testable import GodwitWorker

@Suite struct `A stage's checkpoint` {
  private static let pair = [
    entity("Author", attribute("name"), toMany("books", "Book", inverse: "author")),
    entity("Book", attribute("title"), toOne("author", "Author", inverse: "books")),
  ]

  /// Each byte with another bit, and the file cut after it: what SHA-256 and the frame protect, and
  /// what the header says, the version among it.
  @Test func `proves unusable with any byte changed or missing`() throws {
    let fixture = try MigrationFixture(
      // A table without rows has nothing for verify to read, so soundness has something to ask.
      from: Self.pair, to: Self.pair + [entity("Aisle", attribute("name"), toOne("next", "Aisle"))],
      rows: """
        INSERT INTO ZAUTHOR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'a');
        INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZAUTHOR) VALUES (1, 2, 1, 'b', 1)
        """)
    _ = try fixture.migrate()
    let (plan, run, _) = try #require(fixture.latest)
    let fingerprint = try #require(Hexadecimal.bytes(of: plan.fingerprint))
    var stages: Set<Stage> = []
    for stage in Stage.allCases {
      guard let unit = try run.finished(stage).min() else { continue }
      stages.insert(stage)
      let name = CheckpointName(stage: stage, unit: unit)
      let url = URL(filePath: run.path(of: name).string)
      let whole = try Data(contentsOf: url)
      for place in whole.indices {
        var flipped = whole
        flipped[place] ^= 1 << UInt8(place % 8)
        for bytes in [flipped, whole[..<place]] {
          try bytes.write(to: url)
          let error = #expect(throws: CheckpointError.self) {
            try CheckpointReader.summary(of: name, in: run, fingerprint: fingerprint)
          }
          #expect(error?.provesUnusable == true, "\(name), byte \(place)")
        }
      }
      try whole.write(to: url)
      // Whole as it is, under the name of another unit or stage, or for another plan.
      for other in [
        CheckpointName(stage: stage, unit: unit + 100),
        CheckpointName(stage: stage == .rows ? .verify : .rows, unit: unit + 100),
      ] {
        try whole.write(to: URL(filePath: run.path(of: other).string))
        #expect(throws: CheckpointError.otherUnit(run.path(of: other), found: name)) {
          try CheckpointReader.summary(of: other, in: run, fingerprint: fingerprint)
        }
      }
      #expect(throws: CheckpointError.otherPlan(run.path(of: name))) {
        try CheckpointReader.summary(of: name, in: run, fingerprint: fingerprint.reversed())
      }
    }
    // A whole audit is a matter of the worker's loop.
    #expect(stages == [.rows, .verify, .soundness])
  }
}
