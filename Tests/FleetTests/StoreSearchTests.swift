import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitLedger
import GodwitObjectModel
import GodwitPlanning
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `A path pattern` {
  @Test(arguments: [
    ("*/Recipes.sqlite", "ada/Recipes.sqlite", true),
    ("*/Recipes.sqlite", "Recipes.sqlite", false),
    ("*/Recipes.sqlite", "ada/b/Recipes.sqlite", false),
    ("**/*.sqlite", "a.sqlite", true),  // ** is any number of folders, none as well
    ("**/*.sqlite", "a/b/c/d.sqlite", true),
    ("**/*.sqlite", "a/b/c/d.sqlite-wal", false),
    ("a/**/b/*.db", "a/b/x.db", true), ("a/**/b/*.db", "a/b/c/b/x.db", true),
    ("a/**/b/*.db", "a/b/c/x.db", false),
    ("*/trash/**", "ada/trash/x", true), ("*/trash/**", "ada/trash", false),
    ("store-????.sqlite", "store-0001.sqlite", true),
    ("store-????.sqlite", "store-1.sqlite", false),
    ("*", ".hidden", false), (".*", ".hidden", true), ("**/a", ".git/a", false),
    ("a*b*c", "aXbYbZc", true), ("a*b*c", "aXbYbZ", false), ("*", "", false),
    ("[ab].sqlite", "[ab].sqlite", true), ("[ab].sqlite", "a.sqlite", false),
    ("Cre\u{301}me", "Cr\u{E9}me", true),  // a Mac writes accents apart
    ("Cr?me", "Cre\u{301}me", true), ("Cre*", "Cre\u{301}me", false),
    // Swift joins this letter with the sign after it.
    ("**/*.sqlite", "\u{6DD}.sqlite", true), ("*.bak", "b\u{6DD}.bak", true),
    ("b\u{6DD}*", "b\u{6DD}.bak", true), ("b\u{6DD}/*", "b\u{6DD}/s", true),
    ("*/s", "b\u{6DD}/s", true), ("?.sqlite", "\u{6DD}.sqlite", true),
  ])
  func `means these paths and no others`(pattern: String, path: String, matches: Bool) throws {
    #expect(try #require(PathPattern(pattern)).matches(path) == matches)
  }

  @Test(arguments: ["", "/a", "a//b", "a/", "../a", "./a", "a/../b", "a\0b"])
  func `is never one that leads out`(text: String) {
    #expect(PathPattern(text) == nil)
  }

  @Test func `takes no longer for many stars`() throws {
    let pattern = try #require(PathPattern(String(repeating: "*a", count: 100) + "b"))
    #expect(!pattern.matches(String(repeating: "a", count: 250)))
  }
}

@Suite struct `A search for stores` {
  private func pipeline(
    _ scratch: borrowing Scratch, include: String = "**/*.sqlite", exclude: String = "nothing",
    commit: String = "replace"
  ) throws -> Pipeline {
    let text = """
      stores: { roots: ["\(scratch.path)"], include: "\(include)", exclude: "\(exclude)" }
      models: m
      commit: \(commit)
      """
    return try Pipeline(bytes: Array(text.utf8), file: scratch.path.appending("pipeline.yaml"))
  }

  private func found(_ findings: StoreSearch.Findings, _ root: FilePath) -> [String] {
    findings.stores.map { store in
      var path = store.path
      return path.removePrefix(root) ? path.string : store.path.string
    }
  }

  private func fill(_ scratch: borrowing Scratch, _ names: [String]) throws {
    for name in names {
      let path = scratch.path.pushing(FilePath(name))
      try FileManager.default.createDirectory(
        atPath: path.removingLastComponent().string, withIntermediateDirectories: true)
      #expect(FileManager.default.createFile(atPath: path.string, contents: Data(name.utf8)))
    }
  }

  @Test func `is in order, and leaves out what Godwit and SQLite keep beside them`() throws {
    let scratch = try Scratch()
    try fill(
      scratch,
      [
        "b/s.sqlite", "b/s.sqlite-wal", "b/s.sqlite-shm", "a/s.sqlite", "a/s.sqlite-journal",
        "a/s.sqlite.godwit-backup-2026/x.sqlite", "a/s.sqlite.godwit/run.sqlite",
        "a/s\u{6DD}.godwit/run.sqlite", "a/s\u{6DD}-wal", "a/s\u{6DD}-shm", "a/s\u{6DD}-journal",
        "a/s.sqlite.godwit-backup-2026.sqlite", "a/s.sqlite.godwit-rolled-back-2026.sqlite",
        "a/.s.sqlite.godwit-backup-2026_SUPPORT/_EXTERNAL_DATA/E",
        ".hidden/s.sqlite", "a/trash/s.sqlite", "state/stores/1/snapshot/s.sqlite", "a/text.txt",
      ])
    let pipeline = try pipeline(scratch, include: "**", exclude: "*/trash/**")
    let search = StoreSearch(pipeline, state: scratch.path.appending("state"))
    #expect(found(try search.run(), scratch.path) == ["a/s.sqlite", "a/text.txt", "b/s.sqlite"])
  }

  @Test func `tells the store and the run of a backup by its name`() throws {
    let backup = try #require(FoundBackup("s\u{6DD}.godwit-backup-2026.sqlite", in: "/r", 1))
    #expect(backup.store == "/r/s\u{6DD}" && backup.run == "2026" && backup.kind == .source)
    #expect(FoundBackup(".godwit-backup-2026.sqlite", in: "/r", 1) == nil)
  }

  @Test func `goes into folders whatever their names end with`() throws {
    let scratch = try Scratch()
    let names = ["a-wal/s.sqlite", "b-journal/s.sqlite", "c-shm/s.sqlite", "d.sqlite/s.sqlite"]
    try fill(scratch, names)
    #expect(found(try StoreSearch(try pipeline(scratch), state: nil).run(), scratch.path) == names)
  }

  @Test func `never finds a backup or a file of a commit, even by its very name`() throws {
    let scratch = try Scratch()
    let names = [
      "s.sqlite.godwit-backup-2026.sqlite", ".s.sqlite.godwit-2026", ".s.sqlite.godwit-2026-clone",
      ".s.sqlite.partial-0", "s\u{6DD}.godwit-backup-2026.sqlite", ".s\u{6DD}.godwit-2026",
      ".s\u{6DD}.partial-0",
    ]
    try fill(scratch, names)
    for name in names {
      let pipeline = try pipeline(scratch, include: name)
      #expect(try StoreSearch(pipeline, state: nil).run().stores.isEmpty, "\(name)")
    }
  }

  @Test func `counts a store once, however many roots lead to it`() throws {
    let scratch = try Scratch()
    try fill(scratch, ["a/s.sqlite"])
    var pipeline = try pipeline(scratch)
    pipeline.stores.roots += [scratch.path.appending("a"), scratch.path]
    #expect(try StoreSearch(pipeline, state: nil).run().stores.count == 1)
  }

  @Test func `leaves out what it wrote beside a store`() throws {
    let scratch = try Scratch()
    try fill(scratch, ["a.sqlite", "a-2.sqlite", "b-2.sqlite"])
    let findings = try StoreSearch(
      try pipeline(scratch, commit: "{ beside: -2 }"), state: nil
    ).run()
    #expect(found(findings, scratch.path) == ["a.sqlite", "b-2.sqlite"])
    #expect(findings.besides.map(\.source.lastComponent?.string) == ["a.sqlite"])
    #expect(findings.besides.map(\.file.path.lastComponent?.string) == ["a-2.sqlite"])
  }

  @Test func `takes what lies there for a store, unless a commit that was cut off writes it`()
    throws
  {
    let scratch = try Scratch()
    try fill(scratch, ["a.sqlite", "a-2.sqlite"])
    let pipeline = try pipeline(scratch, commit: "{ beside: -2 }")
    let (places, root) = (PipelinePlaces(pipeline), scratch.path)
    let search = StoreSearch(pipeline, state: places.state)
    func names() throws -> [String] {
      found(try search.run(places, destinations: []) { _ in }, root)
    }
    #expect(try names() == ["a-2.sqlite", "a.sqlite"])
    let source = try #require(try search.run().besides.first).source
    let run = PipelineRun.directory(of: source, in: places.state)
    try DurableFile.makeFolder(run.path)
    try DurableFile.write([], to: run.journal)
    #expect(try names() == ["a.sqlite"])
  }

  @Test func `adds the write-ahead log to a store's bytes`() throws {
    let scratch = try Scratch()
    try fill(scratch, ["a.sqlite", "a.sqlite-wal"])
    let stores = try StoreSearch(try pipeline(scratch), state: nil).run().stores
    #expect(stores.map(\.bytes) == [Int64("a.sqlite".utf8.count + "a.sqlite-wal".utf8.count)])
  }

  @Test func `wants its roots to be there`() throws {
    let scratch = try Scratch()
    var pipeline = try pipeline(scratch)
    pipeline.stores.roots.append(scratch.path.appending("nowhere"))
    #expect(throws: PipelineError.self) { try StoreSearch(pipeline, state: nil).run() }
  }

  @Test func `tells of folders that cannot be read`() throws {
    let scratch = try Scratch()
    try fill(scratch, ["a/s.sqlite"])
    // Deeper than any path may be long, since root reads what modes forbid.
    let name = String(repeating: "d", count: 200)
    var folder = open(scratch.path.string, O_RDONLY | O_DIRECTORY)
    for _ in 0..<25 {
      try #require(mkdirat(folder, name, 0o700) == 0)
      let next = openat(folder, name, O_RDONLY | O_DIRECTORY)
      close(folder)
      folder = next
    }
    close(folder)
    defer { removeDeep(scratch.path.appending(name)) }
    let findings = try StoreSearch(try pipeline(scratch), state: nil).run()
    #expect(findings.stores.count == 1)
    #expect(findings.unreadable.count == 1)
    #expect(findings.unreadable.first?.reason.isEmpty == false)
  }

  @Test(arguments: ["m\u{FC}ll", "m\u{FC}ll.sqlite"])
  func `tells of names that are not UTF-8`(latin: String) throws {
    let scratch = try Scratch()
    try fill(scratch, ["a/s.sqlite", "a/other.txt"])
    let parent = scratch.path.appending("a").string
    // ISO 8859-1, as old folders of users have it.
    let name = latin.unicodeScalars.map { CChar(truncatingIfNeeded: $0.value) } + [0]
    let folder = open(parent, O_RDONLY | O_DIRECTORY)
    defer { close(folder) }
    if latin.hasSuffix(".sqlite") {
      close(openat(folder, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
    } else {
      try #require(mkdirat(folder, name, 0o700) == 0)
    }
    let findings = try StoreSearch(try pipeline(scratch), state: nil).run()
    #expect(findings.stores.map(\.path.lastComponent?.string) == ["s.sqlite"])
    #expect(findings.unreadable.map(\.reason) == ["its name is not UTF-8"])
    let text = "$'\(scratch.path.string)/a/" + latin.replacing("\u{FC}", with: #"\xfc"#) + "'"
    #expect(findings.unreadable.map(\.path.unambiguousText) == [text])
    #expect(findings.unreadable.first?.message.hasPrefix(text) == true)
  }

  @Test func `keep paths that are not UTF-8 apart from each other and from all that are`() {
    func text(_ bytes: [UInt8]) -> String {
      (bytes.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer {
        FilePath(platformString: $0.baseAddress!).unambiguousText
      }
    }
    let names: [[UInt8]] = [
      [0xFF], [0xFE], [0xFF, 0x0A], Array("\\xff".utf8), Array("\\".utf8) + [0xFF],
      Array("'".utf8) + [0xFF], [0xE2, 0x82], [0xC3, 0xBC],
    ]
    let texts = names.map { text(Array("/r/".utf8) + $0) }
    #expect(
      texts == [
        #"$'/r/\xff'"#, #"$'/r/\xfe'"#, "$'/r/\\xff\n'", #"/r/\xff"#, #"$'/r/\\\xff'"#,
        #"$'/r/\'\xff'"#, #"$'/r/\xe2\x82'"#, "/r/\u{FC}",
      ])
    #expect(Set(texts).count == names.count)
  }

  @Test func `names files that a pattern says and that have names like those of SQLite's files`()
    throws
  {
    let scratch = try Scratch()
    try fill(
      scratch, ["a/my-journal", "a/s.sqlite-wal", "a/s.sqlite", "b/x.godwit-backup-1.sqlite"])
    func leftOut(_ include: String, _ exclude: String = "nothing") throws -> [String] {
      try StoreSearch(try pipeline(scratch, include: include, exclude: exclude), state: nil).run()
        .leftOut.compactMap { $0.lastComponent?.string }
    }
    #expect(try leftOut("*/my-journal") == ["my-journal"])
    #expect(try leftOut("b/x.godwit-backup-1.sqlite") == ["x.godwit-backup-1.sqlite"])
    #expect(try leftOut("**").isEmpty, "no pattern says their names")
    #expect(try leftOut("**/*-journal").isEmpty)
    #expect(try leftOut("a/my-journal", "a/*").isEmpty, "excluded")
  }

  private func removeDeep(_ path: FilePath) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/rm")
    process.arguments = ["-rf", path.string]
    try? process.run()
    process.waitUntilExit()
  }
}
