import Foundation
import GodwitObjectModel
import GodwitPersistentStore
import SystemPackage
import Testing

@Suite(.enabled(if: Corpus.isPresent)) struct `Every store of the corpus` {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test func `is found`() {
    #expect(Corpus.stores.count == 66)
  }

  @Test(arguments: Corpus.stores)
  func `opens and is counted without a trace`(store: String) throws {
    let path = Corpus.path(store)
    let before = try trace(path)
    let source = try SourceStore(path: path, snapshotFolder: folder.path)
    #expect(source.metadata.uuid != nil)
    #expect(!source.primaryKeys.isEmpty)
    if let model = try? source.cachedModel() {
      let binding = StoreBinding(source, try EntityHierarchy(model))
      let census = try StoreCensus(binding)
      #expect(census.rows.values.reduce(0, +) > 0 || source.header.pageCount ?? 0 < 200)
      #expect(census.ownerlessRows.isEmpty)
      #expect(try binding.constraintNotes() == [])
      for table in census.tables.values { #expect((table.bytes > 0) == (table.rows > 0)) }
    }
    #expect(try trace(path) == before)
    #expect(try source.isUnchanged())
  }

  /// Where the judge finds every statement as the rules have it, so must we, in its text and, but
  /// for tables that a migration in place built again, in its order.
  @Test(arguments: Corpus.stores)
  func `has the schema that the layout computes`(store: String) throws {
    let source = try SourceStore(path: Corpus.path(store), snapshotFolder: folder.path)
    guard let model = try? source.cachedModel() else { return }
    let judged = try Corpus.oracle([
      "ddl", Corpus.path(store).string, "--model", "cache:\(Corpus.path(store))", "--json",
    ])
    let version = try #require(judged["framework rules"] as? Int)
    let layout = StoreLayout(
      StoreBinding.fitting(try EntityHierarchy(model), to: source), frameworkVersion: version)
    let expected = DestinationSchema(layout).statements
    let names = Set(source.schemaObjects.filter { $0.kind == .table }.map(\.name))
      .filter(SchemaObject.isApplicationTable)
    let actual = source.schemaObjects.filter {
      ($0.kind == .table || $0.kind == .index) && $0.sql != nil && names.contains($0.table)
    }
    let have = Dictionary(uniqueKeysWithValues: actual.map { ($0.name, $0.sql ?? "") })
    let want = Dictionary(uniqueKeysWithValues: expected.map { ($0.name, $0.sql) })
    // The same differences as the judge finds, statement by statement.
    let ours = Set(
      want.filter { have[$0.key] != $0.value }.map(\.key)
        + have.keys.filter { want[$0] == nil })
    let tables = judged["tables"] as? [[String: Any]] ?? []
    let indexes = judged["indexes"] as? [[String: Any]] ?? []
    #expect(ours == Set((tables + indexes).compactMap { $0["name"] as? String }))
    for item in tables + indexes {
      if let name = item["name"] as? String, let text = item["expected"] as? String {
        #expect(want[name] == text)
      }
    }
    if judged["order same"] as? Bool == true {
      #expect(
        actual.map(\.name).filter { want[$0] != nil }
          == expected.map(\.name).filter { have[$0] != nil })
    }
  }

  /// Names, sizes and times of everything beside the store.
  private func trace(_ path: FilePath) throws -> [String] {
    let folder = path.removingLastComponent().string
    let paths = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
    return try paths.sorted().map { name in
      let facts = try FileManager.default.attributesOfItem(atPath: folder + "/" + name)
      return "\(name) \(facts[.size] ?? 0) \(facts[.modificationDate] ?? 0)"
    }
  }
}
