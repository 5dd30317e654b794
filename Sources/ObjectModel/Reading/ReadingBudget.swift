/// How many items a reader may still make of one file.
///
/// Archives share objects, and XML models share composite types: a small file can stand for
/// any number of properties. What is shared is counted each time that it is read.
final class ReadingBudget {
  /// Half a million. The largest model seen has some ten thousand items.
  static let limit = 500_000
  private var left = ReadingBudget.limit

  /// - Throws: ``ModelError/tooLarge(what:limit:)``.
  func spend(_ count: Int) throws {
    left -= count
    guard left >= 0 else { throw ModelError.tooLarge(what: "items", limit: Self.limit) }
  }

  /// The elements, paid for.
  func items<Item>(_ items: [Item]) throws -> [Item] {
    try spend(items.count)
    return items
  }
}
