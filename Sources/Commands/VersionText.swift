import GodwitFleet

/// What `--version` says: the version, the commit, and the libraries that are loaded.
enum VersionText {
  /// Semantic; see the scope of the promise in README.md.
  static let number = "0.1.0"

  static var text: String {
    lines(commit: BuildCommit.hash, isModified: BuildCommit.isModified, LibraryVersions.all)
      .joined(separator: "\n")
  }

  /// - Parameter commit: nil for a build outside of a git clone.
  static func lines(
    commit: String?, isModified: Bool, _ libraries: [(name: String, version: String)]
  ) -> [String] {
    let origin = commit.map { "commit \($0)" + (isModified ? ", with changes" : "") }
    return [
      "godwit \(number)", origin ?? "not built from a git clone",
      libraries.map { "\($0.name) \($0.version)" }.joined(separator: ", "),
    ]
  }
}
