import GodwitFleet
import Testing

@testable import GodwitCommands

@Suite struct `The version` {
  private let libraries = [("SQLite", "3.40.1"), ("zlib", "1.2.13")]

  @Test func `names the commit, and changes that are in none`() {
    #expect(
      VersionText.lines(commit: "c0ffee", isModified: false, libraries) == [
        "godwit \(VersionText.number)", "commit c0ffee", "SQLite 3.40.1, zlib 1.2.13",
      ])
    #expect(
      VersionText.lines(commit: "c0ffee", isModified: true, [])[1] == "commit c0ffee, with changes")
  }

  @Test func `says so when there is no git clone`() {
    #expect(
      VersionText.lines(commit: nil, isModified: false, [])[1] == "not built from a git clone")
  }

  @Test func `has the versions of the libraries that are loaded`() {
    let all = LibraryVersions.all
    #expect(all.map(\.name) == ["SQLite", "zstd", "zlib", "OpenSSL"])
    for (name, version) in all {
      let parts = version.split(separator: ".")
      #expect(parts.count >= 2 && parts[0].allSatisfy(\.isNumber), "\(name) \(version)")
    }
  }
}
