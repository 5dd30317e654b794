import Foundation
import StoreFixtures
import Testing

@Suite(.serialized) struct `An error of a policy of one's own` {
  private func shelves(_ codes: Int...) throws -> LibraryFixture {
    let rows = codes.enumerated().map { "(\($0 + 1), 10, 1, \($1), 'A')" }.joined(separator: ", ")
    return try LibraryFixture(
      "INSERT INTO ZSHELF (Z_PK, Z_ENT, Z_OPT, ZKINDCODE, ZLABEL) VALUES \(rows)")
  }

  @Test func `gives the migration its code where it is one of Core Data's`() throws {
    let refused = try shelves(0, 17).migrate()
    #expect(refused.status == 65)
    #expect(refused.result.code == 1550)
    let reason = try #require(refused.result.reasons?.first)
    #expect(reason.reason == "policy")
    #expect(reason.entity == "Shelf")
    #expect(reason.error?.domain == "NSCocoaErrorDomain")
    #expect(reason.message.contains("ShelfKindPolicy of ShelfToShelf"))
    #expect(reason.message.contains("Shelf with Z_PK 2"))
    #expect(refused.errors.contains(reason.message))
  }

  @Test func `is exactly the one that the migration was cancelled with`() throws {
    let library = try LibraryFixture(
      """
      INSERT INTO ZLIBRARIAN (Z_PK, Z_ENT, Z_OPT, ZFULLNAME) VALUES (1, 4, 1, 'Hypatia'), (8, 4, 1, ' ')
      """)
    let before = try Data(contentsOf: URL(fileURLWithPath: library.store))
    let cancelled = try library.migrate()
    #expect(cancelled.status == 65)
    #expect(cancelled.result.code == 134_120)
    let reason = try #require(cancelled.result.reasons?.first)
    #expect(reason.reason == "cancelled")
    #expect(reason.error?.type == "example_policies.PersonNamePolicy.NameError")
    #expect(
      reason.message
        == "the policy PersonNamePolicy of LibrarianToLibrarian cancelled the migration in "
        + "createDestinationInstances, Librarian with Z_PK 8: a name is blank. "
        + "Correct it in the application and migrate again")
    #expect(try Data(contentsOf: URL(fileURLWithPath: library.store)) == before)
    #expect(!FileManager.default.fileExists(atPath: cancelled.output))
  }

  @Test func `stands against a mapping model whose policies nobody brings along`() throws {
    let plain = LibraryFixture.executable.deletingLastPathComponent()
      .appendingPathComponent("godwit")
    let bundle = LibraryFixture.models
    let pair = [bundle + "/Library.xcdatamodel", bundle + "/Library 2.xcdatamodel"]
    let check = ["mapping", "check", LibraryFixture.mapping] + pair
    let here = try LibraryFixture.run(check)
    #expect(here.status == 0, "\(here.lines)")
    #expect(here.result.isSound == true)
    #expect(here.lines == [])
    let there = try LibraryFixture.run(check, of: plain)
    #expect(there.status == 65)
    #expect(
      there.result.missingPolicies == [
        "AddressPolicy", "AuthorPolicy", "BorrowerPolicy", "IdentifierPolicy",
        "PaymentAuditPolicy", "PersonNamePolicy", "PublisherPolicy", "ShelfKindPolicy",
        "SpamPolicy", "TagMergePolicy",
      ])
    let refused = try shelves(1).migrate(with: plain)
    #expect(refused.status == 65)
    #expect(refused.result.code == 134_170)
  }

  @Test func `names a selector that the policy does not have`() throws {
    let library = try shelves(1)
    let text = try String(contentsOfFile: LibraryFixture.mapping, encoding: .utf8)
    let misspelt = library.scratch.appendingPathComponent("misspelt.yaml").path
    try text.replacing("nameOfKind:", with: "nameForKind:")
      .write(toFile: misspelt, atomically: true, encoding: .utf8)
    let refused = try library.migrate(mapping: misspelt)
    #expect(refused.status == 65)
    #expect(refused.errors.contains("Did you mean nameOfKind:?"))
  }
}
