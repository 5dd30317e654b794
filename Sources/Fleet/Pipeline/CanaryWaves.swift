import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitPlanning
import SystemPackage

/// How many stores are done when a wave is over: the earlier waves count.
package enum WaveSize: Sendable, Equatable, CustomStringConvertible {
  case count(Int)
  /// Of all stores, rounded up.
  case percent(Decimal)

  /// Nil for anything but `1` or `10%`, and for nothing at all.
  package init?(_ text: String) {
    if text.hasSuffix("%") {
      guard let percent = Percent(text), percent.value > 0 else { return nil }
      self = .percent(percent.value)
    } else {
      guard let count = Int(text), count > 0 else { return nil }
      self = .count(count)
    }
  }

  package var description: String {
    switch self {
    case .count(let count): "\(count)"
    case .percent(let percent): "\(percent)%"
    }
  }

  func stores(of all: Int) -> Int {
    switch self {
    case .count(let count): min(count, all)
    case .percent(let percent): min(all, Percent(percent).share(of: all, .up))
    }
  }
}

/// The waves in which a run takes its stores: the same ones for the same stores, however often it is
/// begun.
///
/// Within a wave, and from wave to wave, stores come in the order of a digest of their paths: no
/// folder, user or date comes first. Where their cohorts are known, early waves take from each in
/// turn, so that a version of which there are few stores is tried early, too.
struct CanaryWaves: Sendable, Equatable {
  /// Wave by wave; none is empty.
  private(set) var waves: [[FoundStore]]
  /// Whether an earlier start of the run had other sizes.
  private(set) var isCutAnew = false

  /// - Parameter cohort: What a store has in common with others of its version; nil where unknown.
  init(
    _ stores: [FoundStore], sizes: [WaveSize], cohort: (FoundStore) -> String? = { _ in nil }
  ) {
    waves = Self.cut(Self.interleaved(Self.byDigest(stores), cohort), sizes)
  }

  private static func cut(_ order: [FoundStore], _ sizes: [WaveSize]) -> [[FoundStore]] {
    sizes.reduce(into: ([[FoundStore]](), 0)) { result, size in
      let end = size.stores(of: order.count)
      guard end > result.1 else { return }
      result.0.append(Array(order[result.1..<end]))
      result.1 = end
    }.0
  }

  /// The order in which stores are taken, cohorts aside.
  static func byDigest(_ stores: [FoundStore]) -> [FoundStore] {
    stores.map { (digest: SHA256.digest(of: Array($0.path.string.utf8)), store: $0) }
      .sorted { $0.digest.lexicographicallyPrecedes($1.digest) }
      .map(\.store)
  }

  /// One store of each cohort in turn, the cohort of the first store first.
  private static func interleaved(
    _ stores: [FoundStore], _ cohort: (FoundStore) -> String?
  ) -> [FoundStore] {
    var (names, cohorts): ([String], [String: [FoundStore]]) = ([], [:])
    var unknown: [FoundStore] = []
    for store in stores {
      guard let name = cohort(store) else {
        unknown.append(store)
        continue
      }
      if cohorts[name] == nil { names.append(name) }
      cohorts[name, default: []].append(store)
    }
    // Those that were looked at come first; there are enough of them for every wave but the last.
    var order: [FoundStore] = []
    var place = 0
    while order.count < stores.count - unknown.count {
      for name in names {
        if let members = cohorts[name], place < members.count { order.append(members[place]) }
      }
      place += 1
    }
    return order + unknown
  }
}

// On disk: a store that is migrated has changed its cohort, and stays in its wave all the same.
extension CanaryWaves {
  private struct File: Codable {
    var run: String
    /// As the pipeline had them; nil in files of earlier builds.
    var sizes: [String]?
    /// Paths of every wave but the last, which has the rest.
    var waves: [[String]]
  }

  private static func path(_ state: FilePath) -> FilePath { state.appending("waves.json") }
  private static let byteLimit = 1 << 28

  /// The waves of an earlier start of the run; nil where there are none. Stores that are gone are
  /// left out, and those that are new belong to the last wave. Where the sizes are others by now, the stores come
  /// in the same order, and as many at a time as the new ones say.
  init?(of run: String, in state: FilePath, _ stores: [FoundStore], sizes: [WaveSize]) throws {
    let bytes = try RegularFile.bytesIfPresent(
      of: Self.path(state), limit: Self.byteLimit, isPrivate: true)
    guard let bytes, let file = try? SealedJSON.value(File.self, ofSealedOrPlain: bytes),
      file.run == run
    else { return nil }
    var left = Dictionary(stores.map { ($0.path, $0) }, uniquingKeysWith: { $1 })
    waves = file.waves.map { $0.compactMap { left.removeValue(forKey: FilePath($0)) } }
    waves.append(Self.byDigest(Array(left.values)))
    waves.removeAll(where: \.isEmpty)
    guard let known = file.sizes, known != sizes.map(\.description) else { return }
    (waves, isCutAnew) = (Self.cut(Array(waves.joined()), sizes), true)
  }

  func write(of run: String, sizes: [WaveSize], in state: FilePath) throws {
    let file = File(
      run: run, sizes: sizes.map(\.description),
      waves: waves.dropLast().map { $0.map(\.path.string) })
    try DurableFile.write(SealedJSON.bytes(of: file), to: Self.path(state))
  }
}
