import Foundation
import GodwitObjectModel

/// The migrations that the benchmark compares, and the SQL of its rivals.
package struct BenchMigration: Sendable {
  /// A letter, for the command line and the names of files.
  package let name: String
  package let title: String
  package let source: FixtureModels.Bench
  package let destination: FixtureModels.Bench
  /// The mapping model, in `Fixtures/`; nil where it is inferred.
  package var mapping: String?
  /// The mapping model names policies, which are in the trial executable.
  package var hasPolicies = false
  var rewrite = HandWrittenMigration.Rewrite()

  package static let all: [BenchMigration] = [
    BenchMigration(
      name: "a", title: "columns renamed, dropped, added, widened", source: .one, destination: .two),
    BenchMigration(
      name: "b", title: "every entity number shifts", source: .one, destination: .four),
    BenchMigration(
      name: "c", title: "one small table changes", source: .five, destination: .six),
    BenchMigration(
      name: "d", title: "a mapping model with expressions", source: .one, destination: .three,
      mapping: "Bench.expressions.yaml", rewrite: expressions),
    BenchMigration(
      name: "e", title: "a policy", source: .one, destination: .three,
      mapping: "Bench.policies.yaml", hasPolicies: true, rewrite: policy),
  ]

  /// `Bench.expressions.yaml` in SQL. `lower` and `upper` must know Unicode, and `utf16_length`
  /// counts as Core Data's `length:` does; SQLite has neither of its own.
  private static var expressions: HandWrittenMigration.Rewrite {
    let customer = "FROM {source}ZCUSTOMER AS c WHERE c.Z_PK = ZPURCHASE.ZCUSTOMER"
    var rewrite = HandWrittenMigration.Rewrite()
    rewrite.insertsObjects = true
    rewrite.values = [
      "Customer": [
        "createdAt": "ZCREATEDAT + 86400", "email": "lower(ZEMAIL)", "name": "upper(ZNAME)",
        "points":
          "CASE WHEN ZPOINTS BETWEEN -1000000 AND 1000000 THEN ZPOINTS * 2 + 1 ELSE 0 END",
        "score": "CASE WHEN ZSCORE IS NULL THEN 0 ELSE utf16_length(ZNAME) END",
      ],
      "Product": [
        "price": "ZPRICE * 1.19", "stock": "min(ZSTOCK, 100)", "title": "upper(ZTITLE)",
      ],
      "Purchase": [
        "comment":
          "CASE WHEN (SELECT c.ZPOINTS \(customer)) > 0 THEN ZCOMMENT ELSE (SELECT c.ZNAME \(customer)) END",
        "number": "CASE WHEN ZNUMBER > 0 THEN ZNUMBER / 2 ELSE 0 - ZNUMBER / 2 END",
        "placedAt": "ZPLACEDAT - 3600",
        "status": "CASE WHEN ZSTATUS > 0 AND ZSTATUS < 100 THEN ZSTATUS * 10 ELSE 0 END",
        "total": "ZTOTAL * 2",
      ],
      "Review": [
        "stars": "CASE WHEN ZSTARS >= 3 THEN 5 ELSE 1 END", "text": "lower(ZTEXT)",
        "writtenAt": "ZWRITTENAT + 0.5",
      ],
    ]
    return rewrite
  }

  /// `Bench.policies.yaml` in SQL.
  private static var policy: HandWrittenMigration.Rewrite {
    var rewrite = HandWrittenMigration.Rewrite()
    rewrite.insertsObjects = true
    rewrite.entities = ["Review"]
    rewrite.renumbered = ["Review"]
    rewrite.values = ["Review": ["customer": "NULL", "product": "NULL"]]
    return rewrite
  }

  /// What the benchmark reads of a migration.
  private struct Description: Encodable {
    let name, title, source, destination: String
    let mapping: String?
    let hasPolicies: Bool
    let script, inPlace: String
  }

  /// Writes `a.sql`, `a-in-place.sql` and so on for the migrations of a store of that version, and
  /// `migrations.json`, which lists them.
  package static func writeScripts(
    to folder: String, store: String, version: FixtureModels.Bench
  ) throws {
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true)
    let found = all.filter { $0.source == version }
    for migration in found {
      let sql = try migration.sql()
      try Data(sql.script(for: store).utf8).write(to: file(migration.name + ".sql", in: folder))
      try Data(sql.scriptInPlace(of: store).utf8)
        .write(to: file(migration.name + "-in-place.sql", in: folder))
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    let listed = found.map {
      Description(
        name: $0.name, title: $0.title, source: $0.source.rawValue,
        destination: $0.destination.rawValue, mapping: $0.mapping, hasPolicies: $0.hasPolicies,
        script: $0.name + ".sql", inPlace: $0.name + "-in-place.sql")
    }
    try encoder.encode(listed).write(to: file("migrations.json", in: folder))
  }

  package func sql() throws -> HandWrittenMigration {
    try HandWrittenMigration(from: source.model(), to: destination.model(), rewrite: rewrite)
  }

  private static func file(_ name: String, in folder: String) -> URL {
    URL(fileURLWithPath: folder).appendingPathComponent(name)
  }
}
