import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `A bundle of stores` {
  private func stores(_ sizes: [Int64]) -> [FoundStore] {
    sizes.enumerated().map {
      FoundStore(path: FilePath("/s/\($0.offset)"), root: "/s", bytes: $0.element)
    }
  }

  private func cutter(stores: Int, bytes: Int64, slots: Int) -> BundleCutter {
    var settings = ClusterSettings()
    (settings.bundleStores, settings.bundleBytes) = (stores, bytes)
    return BundleCutter(settings, slots: slots)
  }

  @Test(arguments: [
    (1, 10, 100),  // one slot, and the number alone limits
    (5, 1_000, 16),  // small enough for four a slot, and no smaller than sixteen
    (1_000, 1_000, 16),  // more slots than work
  ])
  func `is neither too large nor too small`(slots: Int, most: Int, largest: Int) {
    let bundles = cutter(stores: most, bytes: 1 << 30, slots: slots)
      .bundles(stores(Array(repeating: 0, count: 320)))
    #expect(bundles.joined().count == 320)
    #expect(Set(bundles.joined().map(\.path)).count == 320)
    #expect((bundles.map(\.count).max() ?? 0) <= min(most, largest))
    #expect((bundles.map(\.count).min() ?? 0) >= min(most, 16, largest))
  }

  @Test func `has no more bytes than it may, but for a store that has more alone`() {
    let cutter = cutter(stores: 1_000, bytes: 40 << 20, slots: 1)
    let bundles = cutter.bundles(stores([50 << 20, 10 << 20, 10 << 20, 10 << 20, 39 << 20]))
    #expect(bundles.first?.map(\.bytes) == [50 << 20], "those that take longest come first")
    for bundle in bundles where bundle.count > 1 {
      #expect(bundle.reduce(0) { $0 + BundleCutter.cost($1) } <= 40 << 20)
    }
    #expect(cutter.isCut(stores([41 << 20])[0]))
    #expect(!cutter.isCut(stores([40 << 20])[0]))
  }

  @Test(arguments: [
    (100, 4, Int64(1) << 30, 25),  // shared among the slots
    (100, 4, Int64(160) << 20, 10),  // no more bytes than a bundle may have
    (3, 100, Int64(1) << 30, 1),  // fewer units than slots
  ])
  func `of units is as large as its share of the slots`(
    units: Int, slots: Int, bytes: Int64, size: Int
  ) {
    let bundles = cutter(stores: 1, bytes: bytes, slots: slots)
      .bundles(units: Array(0..<units), shardBytes: 16 << 20)
    #expect(bundles.flatMap { $0 } == Array(0..<units))
    #expect(bundles.map(\.count).max() == size)
  }
}

@Suite final class `The manifest of an array` {
  private let folder = FilePath(
    FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path)

  init() throws { try DurableFile.makeFolder(folder) }
  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  private var header: BundleManifest.Header {
    BundleManifest.Header(
      name: "000001-abc", pipeline: "/p/pipeline.yaml", state: "/p/state", pipelineDigest: "d",
      run: "r", settings: "s",
      losses: .warn, isStoreOffline: false, wave: 0, workers: 1, slots: 6, isFresh: false,
      tellsEvents: true, units: nil, handsOut: false, bundles: [])
  }

  private func store(_ name: String) -> FoundStore {
    FoundStore(path: FilePath("/s/\(name)"), root: "/s", bytes: 7)
  }

  @Test func `gives each task its own stores`() throws {
    let bundles: [BundleManifest.Bundle] = [
      .stores([store("a"), store("b\"c\nd")]), .stores([store("é")]),
    ]
    let path = folder.appending("manifest.jsonl")
    try BundleManifest.write(bundles, header, to: path)
    let read = try BundleManifest(at: path)
    #expect(read.header.bundles.map(\.lines) == [2, 1])
    for (index, bundle) in bundles.enumerated() { #expect(try read.bundle(index) == bundle) }
    #expect(throws: ClusterError.self) { try read.bundle(2) }
  }

  @Test func `gives each task its own units`() throws {
    var header = header
    header.units = .init(store: "/s/a", stage: .copy, runDirectory: "/p/state/stores/x")
    let path = folder.appending("manifest.jsonl")
    try BundleManifest.write([.units([0, 5]), .units([7])], header, to: path)
    #expect(try BundleManifest(at: path).bundle(1) == .units([7]))
  }

  /// What a manifest may be by accident or on purpose.
  @Test(arguments: [
    "",  // empty
    "{}",  // no line feed
    "{}\n",  // no header
    "{\"manifest\":3}\n",  // of a later version
    String(repeating: "x", count: 5 << 20),  // no end of a line
  ])
  func `is refused where it is none`(text: String) throws {
    let path = folder.appending("manifest.jsonl")
    try DurableFile.write(Array(text.utf8), to: path)
    #expect(throws: ClusterError.self) { try BundleManifest(at: path) }
  }

  @Test func `is refused where a bundle is not what was written`() throws {
    let path = folder.appending("manifest.jsonl")
    try BundleManifest.write([.stores([store("a"), store("b")])], header, to: path)
    let bytes = try RegularFile.bytes(of: path, limit: 1 << 20)
    try DurableFile.write(Array(bytes.dropLast(10)), to: path)
    #expect(throws: ClusterError.self) { try BundleManifest(at: path) }
    var other = bytes
    other[other.count - 3] = UInt8(ascii: "\n")
    try DurableFile.write(other, to: path)
    let read = try BundleManifest(at: path)
    #expect(throws: ClusterError.self) { try read.bundle(0) }
  }

  @Test(arguments: [
    (#""workers":1"#, #""workers":0"#),  // nobody would do anything
    (#""workers":1"#, #""workers":-5"#),
    (#""workers":1"#, #""workers":1000000000"#),  // more than a machine has
    (#""slots":6"#, #""slots":-3"#),
    (#""wave":0"#, #""wave":-1"#),
    (#""offset":0"#, #""offset":9223372036854775807"#),  // the sum is none
    (#""offset":0"#, #""offset":-1"#),
    (#""offset":0"#, #""offset":1"#),  // beyond the end
    (#""lines":2"#, #""lines":9223372036854775807"#),
    (#""lines":2"#, #""lines":-1"#),
  ])
  func `is refused where its numbers cannot be`(number: String, other: String) throws {
    let path = folder.appending("manifest.jsonl")
    try BundleManifest.write([.stores([store("a"), store("b")])], header, to: path)
    let text = try String(contentsOfFile: path.string, encoding: .utf8)
    try #require(text.contains(number))
    try DurableFile.write(Array(text.replacing(number, with: other).utf8), to: path)
    #expect(throws: ClusterError.self) { try BundleManifest(at: path) }
  }

  @Test(arguments: ["-1", "9223372036854775807"])
  func `is refused where a store's size cannot be`(size: String) throws {
    let path = folder.appending("manifest.jsonl")
    // Of the same length, so that the bundle's place stays true.
    let stores = [
      FoundStore(path: "/s/a", root: "/s", bytes: Int64(size.count == 2 ? 10 : 1 << 59))
    ]
    try BundleManifest.write([.stores(stores)], header, to: path)
    let text = try String(contentsOfFile: path.string, encoding: .utf8)
      .replacing(#""bytes":10,"#, with: #""bytes":-1,"#)
    try DurableFile.write(Array(text.utf8), to: path)
    let read = try BundleManifest(at: path)
    #expect(throws: ClusterError.self) { try read.bundle(0) }
  }

  @Test func `has markers that are told by their names`() {
    let markers = BundleMarkers(names: [
      "manifest.jsonl", "permit", "0.done", "0.lock", "0.start-12_0-0-a", "0.results-12_0-0-a",
      "10.start-b", "10.start-c", "-1.done", "x.done", ".0.done.partial-0",
    ])
    #expect(markers.done == [0])
    #expect(markers.started == [0: ["12_0-0-a"], 10: ["b", "c"]])
    #expect(markers.results == [0: ["12_0-0-a"]])
  }

  @Test func `names every start of a task anew`() {
    #expect(TaskName.attempt != TaskName.attempt)
    #expect(TaskName.attempt.utf8.allSatisfy { $0 != UInt8(ascii: "/") && $0 > 0x20 && $0 < 0x7F })
  }
}
