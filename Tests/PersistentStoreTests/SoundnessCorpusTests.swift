import Foundation
import GodwitObjectModel
import GodwitPersistentStore
import SystemPackage
import Testing

/// The judge and we look for the same things, in different languages by different people's hands.
@Suite(.enabled(if: Corpus.isPresent)) struct `Soundness, compared with the judge` {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  // Every second one: the judge takes its time, and migrations of the corpus have it look at all of them.
  @Test(arguments: Corpus.stores.indices.filter { $0 % 2 == 0 }.map { Corpus.stores[$0] })
  func `is the same for a real store`(store: String) throws {
    let path = Corpus.path(store)
    guard let ours = try classes(path) else { return }
    var judged = try theirs(path)
    if store.hasSuffix("/SampleModel_V2.sqlite") {
      // Core Data renamed an entity in place and left the old name in Z_PRIMARYKEY. The judge
      // counts it as damage; we know the name by the renaming identifier and only note it.
      #expect(judged.removeValue(forKey: "control") != nil)
    }
    #expect(ours == judged)
  }

  /// Small stores that between them have sub-entities, join tables, order, constraints, history.
  private static let samples = [
    "alemar11__CoreDataPlus/Tests/Resources/SampleModel/Fixtures/SampleModel_V1.sqlite",
    "alemar11__CoreDataPlus/Tests/Resources/SampleModel2/Fixtures/SampleModel2_V2.sqlite",
    "alhoqbani__AppleSample-iPhoneCoreDataRecipes/Recipes/Recipes.sqlite",
  ]
  private static let kinds = [
    "primarykey", "super", "schema", "entity", "dangling", "class", "numbers", "order", "metadata",
    "plist", "modelcache", "page", "text", "external", "header", "zero", "truncate", "wal",
  ]

  /// Each seed is another damage of the same kind. Raise it for a longer trial.
  private static let seeds = 1

  @Test(arguments: zip(kinds, kinds.indices.map { samples[$0 % samples.count] }))
  func `is the same for a damaged store`(kind: String, store: String) throws {
    for seed in 1...Self.seeds {
      let target = folder.path.appending("\(kind)-\(seed).sqlite")
      let process = Process()
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = [
        "python3", Corpus.root.appending(path: "oracle/oracle").path, "mutate",
        Corpus.path(store).string, target.string, "--kind", kind, "--seed", "\(seed)",
      ]
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      try process.run()
      process.waitUntilExit()
      // The model of the sound store: the cached one may be what is damaged.
      let sound = try SourceStore(path: Corpus.path(store), snapshotFolder: folder.path)
      let model = try #require(try sound.cachedModel())
      let judged = try? theirs(target, model: "cache:\(Corpus.path(store))")
      let ours: [String: Int64]?
      do {
        ours = try classes(target, model: model)
      } catch is StoreError {
        ours = nil  // told at once that the file cannot be used
      } catch {
        // SQLite gave up in the middle; the judge crashes there.
        ours = nil
      }
      guard let ours, let judged, !judged.isEmpty || !ours.isEmpty else { continue }
      // A damaged page or file header may be noticed by either, in whatever question meets it.
      if ["page", "header", "zero", "wal"].contains(kind) { continue }
      // The judge ends a text at its first NUL, and so finds some too short.
      let judgedKeys = Set(judged.keys).subtracting(kind == "text" ? ["validation"] : [])
      let ourKeys = Set(ours.keys).subtracting(kind == "text" ? ["validation"] : [])
      #expect(ourKeys == judgedKeys, "seed \(seed)")
    }
  }

  private func classes(_ path: FilePath, model given: ManagedObjectModel? = nil) throws -> [String:
    Int64]?
  {
    let source = try SourceStore(path: path, snapshotFolder: folder.path)
    guard let model = given ?? (try? source.cachedModel()) else { return nil }
    let findings = try StoreSoundness.check(
      StoreBinding(source, try EntityHierarchy(model)), pattern: Self.pattern)
    return Self.sum(findings.map { ($0.kind.rawValue, $0.count) })
  }

  private static func pattern(_ text: String) -> ((String) -> Bool)? {
    guard let expression = try? NSRegularExpression(pattern: text) else { return nil }
    return { value in
      let whole = NSRange(location: 0, length: value.utf16.count)
      return expression.firstMatch(in: value, options: .anchored, range: whole)?.range == whole
    }
  }

  private func theirs(_ path: FilePath, model: String? = nil) throws -> [String: Int64] {
    let report = try Corpus.oracle([
      "check", path.string, "--model", model ?? "cache:\(path)", "--json",
    ])
    let names = ["target entity": "targetEntity", "entity column": "entityColumn"]
    return Self.sum(
      (report["findings"] as? [[String: Any]] ?? []).compactMap { finding in
        guard let name = finding["class"] as? String, let count = finding["count"] as? Int else {
          return nil
        }
        return (names[name] ?? name, Int64(count))
      })
  }

  /// Failures by class. What is told in one finding or in several is a matter of taste.
  private static func sum(_ findings: [(String, Int64)]) -> [String: Int64] {
    var result: [String: Int64] = [:]
    for (name, count) in findings where name != "note" {
      let isText = ["control", "metadata", "modelcache", "file", "schema", "index"].contains(name)
      result[name, default: 0] += isText ? 0 : count
    }
    return result
  }
}
