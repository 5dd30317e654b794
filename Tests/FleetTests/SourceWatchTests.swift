import Foundation
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite(.timeLimit(.minutes(2))) struct `A store that an application keeps locked` {
  private static let model = ManagedObjectModel(entities: [
    EntityDescription(
      name: "P",
      properties: [
        .attribute(AttributeDescription(traits: PropertyTraits(name: "k"), type: .string))
      ])
  ])

  private func write(_ store: FilePath) throws {
    try StoreGenerator(Self.model, options: StoreOptions(seed: 1, rows: 5)).write(to: store.string)
  }

  /// Who wrote for so long may write again while the store is read.
  @Test func `is in use, whatever is found in it afterwards`() throws {
    let scratch = try Scratch()
    let store = scratch.path.appending("store.sqlite")
    try write(store)
    let lock = try StoreLock(excludingOthersFrom: store)
    let watch = SourceWatch(store)
    _ = consume lock
    #expect(watch.wasLocked && watch.identity == nil)
    #expect(watch.interference() == .inUse(store))
    #expect(throws: StoreError.inUse(store)) {
      try watch.reading { throw StoreError.damaged(store, reason: "read in two states") }
    }
  }

  @Test func `says nothing of one that was not there, unless it is there by now`() throws {
    let scratch = try Scratch()
    let store = scratch.path.appending("store.sqlite")
    let watch = SourceWatch(store)
    #expect(!watch.wasLocked && watch.interference() == nil)
    try write(store)
    #expect(watch.interference() == .changed(store))
  }

  /// A clone is of one moment.
  @Test(arguments: [(0.0, false), (7.5, true)])
  func `is looked at in a clone when it can be had`(seconds: Double, isCloned: Bool) throws {
    let scratch = try Scratch()
    let store = scratch.path.appending("store.sqlite")
    let snapshots = scratch.path.appending("snapshot")
    try write(store)
    let isLocked = DispatchSemaphore(value: 0)
    if seconds > 0 {
      Thread.detachNewThread {
        do {
          let lock = try StoreLock(excludingOthersFrom: store)
          isLocked.signal()
          Thread.sleep(forTimeInterval: seconds)
          _ = consume lock
        } catch {
          Issue.record(error)
          isLocked.signal()
        }
      }
      isLocked.wait()
    }
    let inspection = try StoreInspection(
      store, models: GivenModels([]), snapshotFolder: snapshots, readsRows: true)
    #expect(inspection.isSound)
    #expect(FileManager.default.fileExists(atPath: snapshots.string) == isCloned)
  }
}
