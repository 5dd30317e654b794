import Foundation
import Testing

/// Source: `core-data-migration.md` §5.1.
@Suite(.serialized) struct `The hooks of policies` {
  private static let rows = """
    INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 11, 1, 'sea'), (4, 11, 1, 'love');
    INSERT INTO ZSERIES (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (2, 9, 1, 'classics');
    INSERT INTO ZREVIEW (Z_PK, Z_ENT, Z_OPT, ZISSPAM, ZSTARS) VALUES (1, 8, 1, 0, 5);
    INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZSERIES) VALUES (1, 1, 1, 'Emma', 2)
    """

  /// Nothing of it is in the order of names, or of the models.
  private static let mapping = """
    mapping-model: 1
    entity-mappings:
      - { source: Tag, destination: Tag, policy: JournalPolicy }
      - { destination: Author, policy: JournalPolicy }
      - { source: Series, destination: Series, policy: JournalPolicy }
      - { source: Review, type: remove, policy: JournalPolicy }
      - { source: Book, destination: Book }
      - { source: Librarian, destination: Librarian, policy: JournalPolicy }
    """

  private func journal(_ arguments: String...) throws -> [String] {
    let library = try LibraryFixture(Self.rows)
    let journal = library.scratch.appendingPathComponent("journal.txt").path
    let migrated = try migrate(library, arguments, environment: ["LIBRARY_JOURNAL": journal])
    // `super` did what it does without a policy.
    let made = try migrated.table(
      "book", "series",
      of: "SELECT b.ZTITLE, s.ZNAME FROM ZBOOK AS b JOIN ZSERIES AS s ON s.Z_PK = b.ZSERIES")
    #expect(
      made == """
        book  series
        Emma  classics
        """)
    return try String(contentsOfFile: journal, encoding: .utf8)
      .split(separator: "\n").map(String.init)
  }

  private func migrate(
    _ library: LibraryFixture, _ arguments: [String], environment: [String: String] = [:]
  ) throws -> LibraryFixture.Outcome {
    let mapping = library.scratch.appendingPathComponent("journal.yaml").path
    try Self.mapping.write(toFile: mapping, atomically: true, encoding: .utf8)
    let migrated = try library.migrate(arguments, mapping: mapping, environment: environment)
    #expect(migrated.status == 0, "\(migrated.errors)")
    return migrated
  }

  private static let order = """
    TagToTag beginEntityMapping
    TagToTag createDestinationInstances sea
    TagToTag createDestinationInstances love
    TagToTag endInstanceCreation
    Author beginEntityMapping
    Author endInstanceCreation
    SeriesToSeries beginEntityMapping
    SeriesToSeries createDestinationInstances classics
    SeriesToSeries endInstanceCreation
    Review beginEntityMapping
    Review endInstanceCreation
    LibrarianToLibrarian beginEntityMapping
    LibrarianToLibrarian endInstanceCreation
    TagToTag createRelationships sea
    TagToTag createRelationships love
    TagToTag endRelationshipCreation
    Author endRelationshipCreation
    SeriesToSeries createRelationships classics
    SeriesToSeries endRelationshipCreation
    Review endRelationshipCreation
    LibrarianToLibrarian endRelationshipCreation
    TagToTag performCustomValidation
    TagToTag endEntityMapping
    Author performCustomValidation
    Author endEntityMapping
    SeriesToSeries performCustomValidation
    SeriesToSeries endEntityMapping
    Review performCustomValidation
    Review endEntityMapping
    LibrarianToLibrarian performCustomValidation
    LibrarianToLibrarian endEntityMapping
    """.split(separator: "\n").map(String.init)

  @Test func `are called in Core Data's order`() throws {
    let journal = try journal("--workers", "1")
    #expect(journal.filter { !$0.contains("resumeEntityMapping") } == Self.order)
  }

  @Test func `of one entity mapping are called in Core Data's order by any workers`() throws {
    let journal = try journal("--workers", "3", "--shard-bytes", "1")
      .filter { !$0.contains("resumeEntityMapping") }
    #expect(journal.sorted() == Self.order.sorted())
    for mapping in ["TagToTag", "Author", "SeriesToSeries", "Review", "LibrarianToLibrarian"] {
      #expect(
        journal.filter { $0.hasPrefix(mapping + " ") }
          == Self.order.filter { $0.hasPrefix(mapping + " ") })
    }
    // No stage begins before the one before it has ended everywhere.
    let stages = journal.map { line in
      Self.stages.firstIndex { stage in stage.contains { line.contains($0) } } ?? -1
    }
    #expect(stages == stages.sorted())
    #expect(!stages.contains(-1))
  }

  private static let stages = [
    ["beginEntityMapping", "createDestinationInstances", "endInstanceCreation"],
    ["createRelationships", "endRelationshipCreation"],
    ["performCustomValidation", "endEntityMapping"],
  ]

  @Test func `may print, and what they print comes to standard error`() throws {
    let migrated = try migrate(LibraryFixture(Self.rows), ["--workers", "1"])
    let lines = migrated.errors.split(separator: "\n").map(String.init)
    #expect(lines.filter(Self.order.contains) == Self.order)
    #expect(!migrated.lines.contains(where: Self.order.contains))
  }

  @Test func `of a later stage follow a resumption`() throws {
    let journal = try journal("--workers", "1").filter { $0.hasPrefix("TagToTag ") }
    #expect(
      journal.enumerated().filter { $1.contains("resumeEntityMapping") }.map {
        journal[$0.offset + 1]
      } == ["TagToTag createRelationships sea", "TagToTag performCustomValidation"])
  }
}
