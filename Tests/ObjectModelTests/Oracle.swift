import Foundation

@testable import GodwitObjectModel

/// The independent reader of models beside the checkout, a Python program.
enum Oracle {
  static let folder = Corpus.root + "/oracle"
  static let isHere =
    FileManager.default.fileExists(atPath: folder + "/oraclelib/model.py")
    && FileManager.default.isExecutableFile(atPath: "/usr/bin/python3")

  private static let script = """
    import sys
    sys.path.insert(0, sys.argv[1])
    sys.dont_write_bytecode = True
    from oraclelib import model
    for line in sys.stdin:
        source, copy = line.rstrip("\\n").split("\\t")
        a = model.load(source)
        b = model.from_archive(open(copy, "rb").read())
        if a.version_hashes() != b.version_hashes() or a.order != b.order:
            print(source, "hashes")
        for name, entity in a.entities.items():
            other = b.entities[name]
            if set(entity.own) != set(other.own) or entity.unique != other.unique:
                print(source, name, "properties")
                continue
            for key, prop in entity.own.items():
                copied = other.own[key]
                fields = ["default", "external", "derived"] if prop.kind == "attribute" else \\
                    ["rule", "ordered", "minimum", "maximum"] if prop.kind == "relationship" else []
                for field in fields:
                    if getattr(prop, field) != getattr(copied, field):
                        print(source, name, key, field)
    """

  /// Lines that tell where the oracle reads a model and our archive of it differently.
  static func disagreements(over files: [String]) throws -> [String] {
    let temporary = FileManager.default.temporaryDirectory
      .appendingPathComponent("godwit-oracle-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: temporary, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: temporary) }
    var input = ""
    for (number, file) in files.enumerated() {
      let copy = temporary.appendingPathComponent("\(number).mom")
      try Data(ModelFile.model(at: file).archiveBytes()).write(to: copy)
      input += "\(file)\t\(copy.path)\n"
    }
    let list = temporary.appendingPathComponent("list")
    try Data(input.utf8).write(to: list)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
    process.arguments = ["-c", script, folder]
    process.standardInput = try FileHandle(forReadingFrom: list)
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let text = String(decoding: data, as: UTF8.self)
    return text.split(separator: "\n").map(String.init)
      + (process.terminationStatus == 0 ? [] : ["exit \(process.terminationStatus)"])
  }
}
