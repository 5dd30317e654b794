import Foundation
import GodwitKeyedArchive
import GodwitSQLite
import Testing

@Suite struct `Metadata of an application` {
  private func metadata(_ folder: PipelineFolder, _ store: String) throws -> PropertyList {
    let file = try Connection(path: folder.path(store), mode: .immutable)
    let plist = try file.rows("SELECT Z_PLIST FROM Z_METADATA").first?[0].blob
    return try PropertyList(bytes: try #require(plist))
  }

  private func folder(_ change: (inout PropertyListDictionary) -> Void) throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    try folder.write(
      "stores/a.sqlite", "Orders.xcdatamodeld/Orders",
      "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (1, 1, 1, 'A', 5)")
    var list = try #require(try metadata(folder, "stores/a.sqlite").dictionary)
    change(&list)
    let file = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    _ = try file.rows(
      "UPDATE Z_METADATA SET Z_PLIST = ?1", [.blob(PropertyList.dictionary(list).binary())])
    try file.close()
    return folder
  }

  private func words(_ way: String, _ folder: PipelineFolder) -> [String] {
    let store = folder.path("stores/a.sqlite")
    let models = ["--models", folder.path("Orders.xcdatamodeld")]
    let migrate = ["migrate", store, "--mapping", folder.path("orders.mapping.yaml")] + models
    return switch way {
    case "in place": migrate
    case "migrate": migrate + ["--output", folder.path("stores/b.sqlite")]
    default: ["repair", store, "--output", folder.path("stores/b.sqlite")] + models
    }
  }

  /// Keys that Unicode normalisation alone tells apart, which Core Data keeps apart.
  @Test(arguments: ["in place", "migrate", "repair"])
  func `keep each of two spellings of one key`(way: String) throws {
    let spellings: PropertyListDictionary = [
      "caf\u{E9}": .string("one"), "cafe\u{301}": .string("two"),
    ]
    let folder = try folder { list in
      for (key, value) in spellings { list[key] = value }
      list["inner"] = .array([.dictionary(spellings)])
    }
    let run = try Godwit.run(words(way, folder))
    #expect(run.status == 0, "\(run.messages)")
    let found = try metadata(folder, way == "in place" ? "stores/a.sqlite" : "stores/b.sqlite")
    for list in [found, try #require(found["inner"]?.array?.first)] {
      #expect(list["caf\u{E9}"]?.string == "one" && list["cafe\u{301}"]?.string == "two")
    }
  }

  @Test func `that are nested too deeply are refused with the key that they lie under`() throws {
    let folder = try folder { list in
      list["settings"] = (0..<400).reduce(.integer(1)) { inner, _ in .array([inner]) }
    }
    let run = try Godwit.run(words("migrate", folder))
    #expect(run.status == 65, "\(run.messages)")
    #expect(
      run.messages.contains("Z_METADATA.Z_PLIST") && run.messages.contains("\"settings\"")
        && run.messages.contains("nested too deeply"), "\(run.messages)")
  }
}
