import Foundation
import GodwitLedger

/// The table of all stores as data for the page's script: words once, rows as short arrays.
///
/// Bounded: a page of 40 000 stores has to open at once. Stores that did not end well come first, so
/// that they are never what is left out.
struct StoreTable {
  /// Path, verdict, version, rows, bytes, seconds, reason; of words their places, -1 for none.
  private(set) var json: String
  /// What all paths begin with.
  private(set) var root: String
  private(set) var omittedCount = 0

  /// Bytes of rows, and of reasons: 6 and 2 MB.
  static let (mostRowBytes, mostReasonBytes) = (6_000_000, 2_000_000)

  init(_ stores: [RunReport.Store]) {
    root = Self.commonFolder(of: stores.lazy.map(\.path))
    var verdicts = Words()
    var versions = Words()
    var reasons = Words()
    var rows = ""
    let isBad = { (store: RunReport.Store) in
      !RunReport.goodVerdicts.contains(store.verdict)
    }
    for store in stores.filter(isBad) + stores.filter({ !isBad($0) }) {
      guard rows.utf8.count < Self.mostRowBytes else {
        omittedCount += 1
        continue
      }
      let verdict = verdicts.place(of: store.verdict)
      let version = store.sourceVersion.map { versions.place(of: $0) } ?? -1
      var reason = -1
      if let first = store.reasons.first {
        // The store's own path would make every message one of a kind.
        let message = first.message.replacing(store.path, with: "this store")
        let isFull = reasons.byteCount > Self.mostReasonBytes
        reason = reasons.place(of: isFull ? first.reason : "\(first.reason): \(message)")
      }
      if !rows.isEmpty { rows += ",\n" }
      rows +=
        "[\(Self.text(store.path.dropFirst(root.count))),\(verdict),\(version),"
        + "\(store.rows.map(String.init) ?? "null"),\(store.sourceBytes),"
        + "\((store.seconds * 1000).rounded() / 1000),\(reason)]"
    }
    json =
      "{\"verdicts\":\(verdicts.json),\"versions\":\(versions.json),\"reasons\":\(reasons.json),"
      + "\"rows\":[\(rows)]}"
  }

  /// Words in the order in which they were met.
  private struct Words {
    private var places: [String: Int] = [:]
    private var texts: [String] = []
    private(set) var byteCount = 0

    mutating func place(of word: String) -> Int {
      if let place = places[word] { return place }
      places[word] = texts.count
      texts.append(word)
      byteCount += word.utf8.count
      return texts.count - 1
    }

    var json: String { "[" + texts.map { StoreTable.text($0[...]) }.joined(separator: ",") + "]" }
  }

  /// A JSON string that neither ends a script element nor begins a comment in one.
  static func text(_ text: Substring) -> String {
    var result = "\""
    for scalar in VisibleText.line(String(text)).unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "<", ">", "&", "\u{2028}", "\u{2029}", "\u{0}"..."\u{1F}":
        result += String(format: "\\u%04x", scalar.value)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  /// The folder, with its last `/`, that all paths lie below; empty where there is none.
  static func commonFolder(of paths: some Sequence<String>) -> String {
    var common: Substring?
    for path in paths {
      guard let known = common else {
        common = path[...]
        continue
      }
      if !path.hasPrefix(known) { common = known.commonPrefix(with: path)[...] }
    }
    guard let common, let end = common.lastIndex(of: "/") else { return "" }
    return String(common[...end])
  }
}
