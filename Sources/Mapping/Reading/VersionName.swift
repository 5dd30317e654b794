import GodwitDurableFiles
import GodwitObjectModel

/// What a version is called. Xcode calls the versions of every bundle alike, `Model` and `Model 2`, so
/// that the bundle belongs to it.
package struct VersionName: Sendable {
  /// `Shop` of `Shop.xcdatamodeld` and of `Shop.momd`; nil where it is not known.
  package var bundle: String?
  /// The version's own name.
  package var name: String

  /// Puts a name together.
  package init(_ name: String, bundle: String? = nil) {
    self.name = name
    self.bundle = bundle
  }

  /// What a version is called that was read.
  package init(_ version: ModelVersion) {
    self.init(version.name, bundle: version.bundleName)
  }

  /// What a mapping model calls a version: `Shop 2` of `Model/Shop.xcdatamodeld/Shop 2.xcdatamodel`, and
  /// of `Shop.xcdatamodeld:Shop 2`. Nil for a bundle alone, which names no version.
  package init?(path: String) {
    let bundles = [".xcdatamodeld", ".momd"]
    var steps = path.parts(between: "/").filter { !$0.isEmpty }
    if steps.last == "contents" { steps.removeLast() }
    guard let last = steps.popLast() else { return nil }
    for bundle in bundles {
      if last.ends(with: bundle) { return nil }
      if let range = last.utf8.firstRange(of: (bundle + ":").utf8) {
        self.init(
          String(last[range.upperBound...]), bundle: String(last[..<range.lowerBound]))
        return
      }
    }
    let folder = steps.last.flatMap { step in
      bundles.lazy.compactMap { step.before($0) }.first
    }
    // No other point ends a name: versions are called `Shop 1.2`, too.
    let name = [".xcdatamodel", ".mom", ".omo", ".xml"].lazy.compactMap { last.before($0) }.first {
      !$0.isEmpty
    }
    self.init(name ?? last, bundle: folder)
  }
}

extension VersionName: Hashable {
  /// Equal where they have the same Unicode scalars.
  package static func == (a: VersionName, b: VersionName) -> Bool {
    a.name.isSameName(as: b.name) && a.bundle.isSameName(as: b.bundle)
  }

  /// Equal names have equal hashes.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(NameKey(name))
    hasher.combine(bundle.map { NameKey($0) })
  }
}

extension Set<VersionName> {
  /// Those that a mapping model means by a name: of the bundle that it names, else of none that is known.
  /// Where there is neither, its bundle may have been called otherwise, and those of any are meant.
  package func meant(by recorded: VersionName) -> Set<VersionName> {
    // Where none is spelled as recorded, the file system that the mapping model was made on may have spelled it so.
    let own = filter { $0.name.isSameName(as: recorded.name) }
    let alike = own.isEmpty ? filter { $0.name == recorded.name } : own
    guard let bundle = recorded.bundle else { return alike }
    for known in [bundle, nil] {
      let found = alike.filter { $0.bundle == known }
      if !found.isEmpty { return found }
    }
    return alike
  }
}
