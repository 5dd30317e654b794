import Foundation
import GodwitSQLite
import Testing

/// A small shop: an album has photos in order, and tags.
@Suite struct `What a migration would leave behind` {
  private static func model(
    isOrdered: Bool = true, hasMore: Bool = true
  ) -> String {
    """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" \
    userDefinedModelVersionIdentifier="">
      <entity name="Album">
        <attribute name="title" optional="YES" attributeType="String"/>
        \(hasMore ? #"<attribute name="more" optional="YES" attributeType="String"/>"# : "")
        <relationship name="photos" optional="YES" toMany="YES" deletionRule="Nullify" \
    \(isOrdered ? #"ordered="YES" "# : "")destinationEntity="Photo" inverseName="album" inverseEntity="Photo"/>
        <relationship name="tags" optional="YES" toMany="YES" deletionRule="Nullify" \
    destinationEntity="Tag" inverseName="albums" inverseEntity="Tag"/>
      </entity>
      <entity name="Photo">
        <attribute name="name" optional="YES" attributeType="String"/>
        <relationship name="album" optional="YES" maxCount="1" deletionRule="Nullify" \
    destinationEntity="Album" inverseName="photos" inverseEntity="Album"/>
      </entity>
      <entity name="Tag">
        <attribute name="name" optional="YES" attributeType="String"/>
        <relationship name="albums" optional="YES" toMany="YES" deletionRule="Nullify" \
    destinationEntity="Album" inverseName="tags" inverseEntity="Album"/>
      </entity>
    </model>
    """
  }

  private static let rows = """
    INSERT INTO ZALBUM (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES (1, 1, 1, 'a'), (2, 1, 1, 'b'), (3, 1, 1, 'c');
    INSERT INTO ZPHOTO (Z_PK, Z_ENT, Z_OPT, ZNAME, ZALBUM, Z_FOK_ALBUM) VALUES
      (1, 2, 1, 'p', 1, 4096), (2, 2, 1, 'q', 1, 2048), (3, 2, 1, 'r', 2, 2048);
    INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 3, 1, 'x'), (2, 3, 1, 'y');
    INSERT INTO Z_1TAGS VALUES (1, 1), (2, 2);
    """

  /// Stores of `Shop`; `Shop 2` is the destination.
  private func folder(
    from source: String, to destination: String, _ more: String = "", settings: String = ""
  ) throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    for (name, text) in [("Shop", source), ("Shop 2", destination)] {
      let path = folder.path("Shop.xcdatamodeld/\(name).xcdatamodel")
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true)
      try text.write(toFile: path + "/contents", atomically: true, encoding: .utf8)
    }
    try """
    stores: { roots: stores }
    models: Shop.xcdatamodeld
    destination: Shop 2
    \(settings)
    """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    try folder.write("stores/a.sqlite", "Shop.xcdatamodeld/Shop", Self.rows + more)
    return folder
  }

  private func widened(_ more: String = "", settings: String = "") throws -> PipelineFolder {
    try folder(
      from: Self.model(hasMore: false), to: Self.model(), more, settings: settings)
  }

  private func migrate(
    _ folder: PipelineFolder, _ words: [String] = [], command: String = "migrate"
  ) throws -> Godwit.Run {
    try Godwit.run(
      [command, folder.path("stores/a.sqlite"), "--models", folder.path("Shop.xcdatamodeld")]
        + ["--to", "Shop 2", "--json"] + words)
  }

  private func reasons(_ run: Godwit.Run) -> [String] {
    (run.lines.last?["reasons"] as? [[String: Any]] ?? []).compactMap { $0["reason"] as? String }
  }

  private func losses(_ run: Godwit.Run) -> [String] {
    (run.lines.last?["losses"] as? [[String: Any]] ?? []).map { loss in
      let place = ["kind", "entity", "property"].compactMap { loss[$0] as? String }
      return "\(place.joined(separator: " ")) \(loss["count"] as? Int ?? 0)"
    }
  }

  private static let plain = """
    mapping-model: 1
    entity-mappings:
      - { source: Album, destination: Album }
      - { source: Photo, destination: Photo }
      - { source: Tag, destination: Tag }
    """

  // MARK: Rows of nobody

  @Test(arguments: ["NULL, 1", "1.5, 1", "'2abc', 1", "1, '3xyz'", "1, 2.9", "x'31', 1"])
  func `is refused where a pair has a key that is no integer`(pair: String) throws {
    let folder = try widened("INSERT INTO Z_1TAGS VALUES (\(pair))")
    let mapping = folder.path("m.yaml")
    try Self.plain.write(toFile: mapping, atomically: true, encoding: .utf8)
    let before = try folder.bytes("stores/a.sqlite")
    for words in [[], ["--accept-damage"], ["--mapping", mapping]] {
      for command in ["plan", "migrate"] {
        let run = try migrate(folder, words, command: command)
        #expect(run.status == 65, "\(command) \(words): \(run.messages)")
        #expect(reasons(run) == ["rows"])
      }
    }
    #expect(try folder.bytes("stores/a.sqlite") == before)
    #expect(
      try Godwit.run(["verify", folder.path("stores/a.sqlite")]).output.contains("rows: Album.tags")
    )
  }

  @Test(arguments: ["Z_ENT = 99", "Z_ENT = NULL"])
  func `is refused where a row has no entity, whatever damage is accepted`(change: String) throws {
    let folder = try widened("UPDATE ZPHOTO SET \(change) WHERE Z_PK = 3")
    let run = try migrate(folder, ["--accept-damage", "--losses", "allow"])
    #expect(run.status == 65 && reasons(run) == ["rows"], "\(run.messages)")
    #expect(folder.storeFiles() == ["a.sqlite"])
  }

  // MARK: Losses

  /// Nobody has said what may be lost of a version that nobody knows.
  @Test(arguments: ["local", "array"])
  func `is refused of an unknown version, by whichever engine`(engine: String) throws {
    let folder = try folder(
      from: Self.model(), to: Self.model(hasMore: false),
      "UPDATE ZALBUM SET ZMORE = 'x'", settings: "engine: \(engine)")
    let file = folder.path("pipeline.yaml")
    let text = try String(contentsOfFile: file, encoding: .utf8)
    try text.replacing(
      "models: Shop.xcdatamodeld", with: "models: Shop.xcdatamodeld/Shop 2.xcdatamodel"
    )
    .write(toFile: file, atomically: true, encoding: .utf8)
    let before = try folder.bytes("stores/a.sqlite")
    if engine == "array" {
      #expect(try folder.godwit(["run"], ["--detach"]).status == 0)
      let arrays = folder.path("state/cluster")
      let name = try #require(try FileManager.default.contentsOfDirectory(atPath: arrays).first)
      let manifest = "\(arrays)/\(name)/manifest.jsonl"
      #expect(try Godwit.run(["worker", "--manifest", manifest, "--index", "0"]).status == 0)
    }
    let run = try Godwit.run(folder)
    #expect(run.counts == "1 found, 1 refused", "\(run.messages)")
    #expect(try folder.bytes("stores/a.sqlite") == before)
  }

  @Test func `quarantines a store no longer once it may be lost`() throws {
    let settings = "quarantine: { after: 1 }\nlosses: "
    let folder = try folder(
      from: Self.model(), to: Self.model(isOrdered: false), settings: settings + "refuse")
    #expect(try Godwit.run(folder).counts == "1 found, 1 refused")
    let run = try Godwit.run(folder)
    #expect(run.counts == "1 found, 1 quarantined")
    let reasons = run.summary["reasons"] as? [[String: Any]]
    #expect((reasons?.first?["advice"] as? String)?.contains("quarantine release") == true)
    let plan = try folder.godwit(["plan"], ["--samples", "0"])
    #expect("\(plan.lines)".contains("quarantine release"))
    // What the store was refused for is allowed: by an option, and by the key.
    #expect(
      try folder.godwit(["plan"], ["--samples", "0", "--losses", "allow"]).counts
        == "1 found, 1 migrated")
    let text = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
    try text.replacing("losses: refuse", with: "losses: warn")
      .write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    #expect(try Godwit.run(folder).counts == "1 found, 1 migrated")
  }

  @Test func `is counted where filters leave objects out`() throws {
    let folder = try widened()
    let mapping = folder.path("m.yaml")
    func filter(_ entries: String...) throws {
      try
        (Self.plain.replacingOccurrences(
          of: "  - { source: Album, destination: Album }",
          with: entries.joined(separator: "\n"))).write(
          toFile: mapping, atomically: true, encoding: .utf8)
    }
    let first = "  - { name: First, source: Album, destination: Album, filter: title < \"b\" }"
    try filter(first)
    let refused = try migrate(folder, ["--mapping", mapping, "--losses", "refuse"])
    #expect(refused.status == 65 && reasons(refused) == ["lost-left-out"])
    let output = folder.path("out.sqlite")
    let run = try migrate(folder, ["--mapping", mapping, "--output", output])
    #expect(run.status == 0 && losses(run) == ["left-out Album 2"], "\(run.messages)")
    #expect(try folder.table("out.sqlite", "SELECT count(*) FROM ZALBUM") == ["1"])
    // Together two mappings take all.
    try filter(
      first, "  - { name: Rest, source: Album, destination: Album, filter: title >= \"b\" }")
    let whole = try migrate(folder, ["--mapping", mapping, "--losses", "refuse"])
    #expect(whole.status == 0 && losses(whole) == [], "\(whole.messages)")
  }

  /// What an attribute gets over a relationship is a value, and no reference.
  @Test(
    arguments: ["title", "$source.tags.@count", "FUNCTION($source.tags, \"count\")"],
    [
      ("$manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"X\"", 1),
      ("", 2),
    ])
  func `is counted where an attribute reads over the relationship that loses pairs`(
    title: String, tags: (asked: String, lost: Int)
  ) throws {
    let folder = try widened()
    let mapping = folder.path("m.yaml")
    let row = tags.asked.isEmpty ? "default" : "FUNCTION(\(tags.asked), $source.tags)"
    let value = title == "title" ? "$source.title" : "CAST(\(title), \"NSString\")"
    try """
    mapping-model: 1
    entity-mappings:
      - source: Album
        destination: Album
        attributes: { more: '\(value)' }
        relationships: { tags: '\(row)' }
      - { source: Photo, destination: Photo }
      - { name: X, source: Tag, destination: Tag, filter: name == "x", relationships: { albums: default } }
      - { name: Y, source: Tag, destination: Tag, filter: name != "x", relationships: { albums: default } }
    """.write(toFile: mapping, atomically: true, encoding: .utf8)
    let refused = try migrate(folder, ["--mapping", mapping, "--losses", "refuse"])
    #expect(refused.status == 65, "\(refused.messages)")
    let run = try migrate(folder, ["--mapping", mapping, "--output", folder.path("out.sqlite")])
    #expect(run.status == 0 && losses(run).count == 1, "\(run.messages)")
    #expect(losses(run).first?.hasSuffix(" \(tags.lost)") == true, "\(losses(run))")
    #expect(
      try folder.table("out.sqlite", "SELECT count(*) FROM Z_1TAGS") == ["\(2 - tags.lost)"])
  }

  @Test(arguments: ["direct", "progressive"])
  func `is counted where a relationship is no longer ordered`(chain: String) throws {
    let folder = try folder(from: Self.model(), to: Self.model(isOrdered: false))
    let refused = try migrate(folder, ["--chain", chain, "--losses", "refuse"])
    #expect(refused.status == 65 && reasons(refused) == ["lost-order"])
    let run = try migrate(folder, ["--chain", chain])
    #expect(run.status == 0 && losses(run) == ["order Album photos 3"])
  }

  /// Members that come from the other side stand in the order of their own rows.
  @Test(arguments: [(", photos: { value: default }", true), ("", false)])
  func `is counted where a mapping model sets an ordered relationship from its other side`(
    follows: String, isLost: Bool
  ) throws {
    let folder = try widened()
    let mapping = folder.path("shop.mapping.yaml")
    try """
    mapping-model: 1
    entity-mappings:
      - { source: Album, destination: Album, relationships: { tags: automatic\(follows) } }
      - { source: Photo, destination: Photo }
      - { source: Tag, destination: Tag }
    """.write(toFile: mapping, atomically: true, encoding: .utf8)
    let run = try migrate(folder, ["--mapping", mapping, "--output", folder.path("out.sqlite")])
    #expect(run.status == 0, "\(run.messages)")
    #expect(losses(run) == (isLost ? ["order Album photos 3"] : []))
    let places = try folder.table(
      "out.sqlite", "SELECT ZNAME FROM ZPHOTO WHERE ZALBUM = 1 ORDER BY Z_FOK_ALBUM")
    #expect(places == (isLost ? ["p", "q"] : ["q", "p"]))
  }

  @Test(arguments: ["direct", "progressive"])
  func `is refused of a version that the pipeline does not know, unless it says otherwise`(
    chain: String
  ) throws {
    let folder = try folder(
      from: Self.model(), to: Self.model(hasMore: false), "UPDATE ZALBUM SET ZMORE = 'm'",
      settings: "chain: \(chain)")
    // Its own model stays in the store, and is not among those given.
    try FileManager.default.removeItem(atPath: folder.path("Shop.xcdatamodeld/Shop.xcdatamodel"))
    let refused = try Godwit.run(folder)
    #expect(refused.counts == "1 found, 1 refused", "\(refused.messages)")
    let reason = try #require(
      (refused.results.values.first?["reasons"] as? [[String: Any]])?.first)
    #expect(reason["reason"] as? String == "lost-attribute")
    #expect((reason["message"] as? String)?.contains("losses: warn") == true)
    #expect(try Godwit.run(["run", folder.url.path, "--losses", "warn"]).status == 0)
  }

  /// Whether a plan knows what is lost, or only rows show it.
  @Test(arguments: [(true, "lost-attribute"), (false, "lost-left-out")])
  func `is refused of a version that the pipeline does not know with a mapping model, too`(
    isPlanned: Bool, reason: String
  ) throws {
    let settings = "mappings: m.yaml"
    let folder =
      try isPlanned
      ? folder(
        from: Self.model(), to: Self.model(hasMore: false), "UPDATE ZALBUM SET ZMORE = 'm'",
        settings: settings)
      : widened(settings: settings)
    let filter = isPlanned ? "" : ", filter: title < \"b\""
    try Self.plain.replacing("destination: Album }", with: "destination: Album\(filter) }")
      .write(toFile: folder.path("m.yaml"), atomically: true, encoding: .utf8)
    try FileManager.default.removeItem(atPath: folder.path("Shop.xcdatamodeld/Shop.xcdatamodel"))
    let before = try folder.bytes("stores/a.sqlite")
    let refused = try Godwit.run(folder)
    #expect(refused.counts == "1 found, 1 refused", "\(refused.messages)")
    #expect(refused.reason(of: "a") == reason)
    #expect(try folder.bytes("stores/a.sqlite") == before)
    #expect(try Godwit.run(["run", folder.url.path, "--losses", "warn"]).status == 0)
  }

  @Test func `is planned with the settings that it is run with`() throws {
    let folder = try folder(
      from: Self.model(), to: Self.model(hasMore: false), settings: "losses: refuse")
    let plan = folder.path("plan.json")
    #expect(try Godwit.run(["plan", folder.url.path, "--out", plan, "--samples", "0"]).status == 0)
    for line in ["losses: allow", "losses: refuse\ncommit: { beside: -2 }"] {
      let file = folder.path("pipeline.yaml")
      let old = try String(contentsOfFile: file, encoding: .utf8)
      try old.replacingOccurrences(of: "losses: refuse", with: line)
        .write(toFile: file, atomically: true, encoding: .utf8)
      let run = try Godwit.run(["run", folder.url.path, "--plan", plan])
      #expect(run.status == 65, "\(line): \(run.messages)")
      try old.write(toFile: file, atomically: true, encoding: .utf8)
    }
    #expect(try Godwit.run(["run", folder.url.path, "--plan", plan]).status == 0)
  }

  @Test(arguments: [true, false])
  func `keeps what the application has put into the header`(isMapped: Bool) throws {
    let folder = try widened("PRAGMA user_version = 42; PRAGMA application_id = -7;")
    var words: [String] = []
    if isMapped {
      try Self.plain.write(toFile: folder.path("m.yaml"), atomically: true, encoding: .utf8)
      words = ["--mapping", folder.path("m.yaml")]
    }
    #expect(try migrate(folder, words).status == 0)
    #expect(try folder.table("stores/a.sqlite", "PRAGMA user_version") == ["42"])
    #expect(try folder.table("stores/a.sqlite", "PRAGMA application_id") == ["-7"])
  }
}
