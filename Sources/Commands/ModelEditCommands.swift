import ArgumentParser
import GodwitObjectModel
import SystemPackage

extension ModelCommand {
  struct AddVersionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add-version",
      abstract: "Adds a version that equals an existing one; the current version stays current.",
      discussion: """
        A plain .xcdatamodel becomes a bundle first, as in Xcode: Shop.xcdatamodel becomes \
        Shop.xcdatamodeld/Shop.xcdatamodel, the current version.
        """)

    @Argument(
      help: ArgumentHelp("An .xcdatamodeld folder, or a plain .xcdatamodel.", valueName: "models"),
      completion: .file())
    var models: String

    @Argument(help: "The new version's name.")
    var name: String

    @Option(
      help: ArgumentHelp("The version to copy. Default: the current one.", valueName: "version"))
    var from: String?

    @Flag(help: "One JSON object.")
    var json = false

    func run() throws {
      let path = try ModelBundle.adding(name, to: models, from: from)
      if json {
        Output.result(json: BundleLine(path, isCurrent: false))
      } else {
        Output.result(path.string)
      }
    }
  }

  struct SetCurrentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "set-current", abstract: "Makes a version the one that new stores get.")

    @Argument(
      help: ArgumentHelp("An .xcdatamodeld folder.", valueName: "models"), completion: .file())
    var models: String

    @Argument(help: "A version's name.")
    var name: String

    @Flag(help: "One JSON object.")
    var json = false

    func run() throws {
      let path = try ModelBundle(path: models).setCurrent(name)
      if json { Output.result(json: BundleLine(path, isCurrent: true)) }
    }
  }
}

/// What became of a bundle of versions.
struct BundleLine: Encodable {
  var event = "result"
  var version: String
  var path: String
  var isCurrent: Bool

  /// - Parameter folder: The version's, whose name is the version's with an extension.
  init(_ folder: FilePath, isCurrent: Bool) {
    version = folder.stem ?? ""
    path = folder.string
    self.isCurrent = isCurrent
  }
}
