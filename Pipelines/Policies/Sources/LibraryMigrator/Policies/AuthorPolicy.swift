import Foundation
import Godwit

/// Makes a related object out of a column: `Book.authorName` becomes an `Author` of its own, one
/// for all books that give the same name.
final class AuthorPolicy: EntityMigrationPolicy {
  /// Find or create: a fetch for each book would be slow, and finds nothing that is not in here,
  /// since this instance sees every book.
  private var authors: [String: ManagedObject] = [:]

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let book = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source]
    ).first
    let name = (source["authorName"] as String?)?.trimmingCharacters(in: .whitespaces)
    guard let book, let name, !name.isEmpty else { return }
    // Not associated with the book: nobody asks what became of a book and wants its author.
    book["author"] = try author(named: name, manager)
  }

  private func author(named name: String, _ manager: MigrationManager) throws -> ManagedObject {
    if let known = authors[name] { return known }
    let author = try manager.insertNewObject(forEntityName: "Author")
    author["name"] = name
    authors[name] = author
    return author
  }
}
