import GodwitPersistentStore
import SystemPackage

/// Notices that another process wrote to a store while it was read.
///
/// Readers take no lock for as long as a migration lasts, so an application's transaction may show
/// them pages of two states. A store is therefore called damaged, and its rows or its model
/// unfit, only where it is still the one that was looked at first. Who kept it locked all through the
/// first look may go on writing when the reader gets it: nothing is known of that.
struct SourceWatch: Sendable {
  private let files: StoreFiles
  private let first: Swift.Result<StoreIdentity, any Error>

  /// Looks at the store as it is now.
  init(_ store: FilePath) {
    let files = StoreFiles(store)
    self.files = files
    first = Swift.Result { try files.identity() }
  }

  /// nil where the store could not be looked at: reading it says why.
  var identity: StoreIdentity? { try? first.get() }

  /// Whether somebody kept the store locked, so that it could not be looked at.
  var wasLocked: Bool {
    if case .failure(StoreError.inUse) = first { true } else { false }
  }

  /// ``StoreError/changed(_:)`` or ``StoreError/inUse(_:)`` where what was found says nothing about
  /// the store, since another process wrote to it; nil where it is as it was.
  func interference() -> StoreError? {
    if wasLocked { return .inUse(files.store) }
    guard let identity else {
      return (try? files.identity()) == nil ? nil : .changed(files.store)
    }
    do {
      return try files.identity() == identity ? nil : .changed(files.store)
    } catch StoreError.inUse(let path) {
      return .inUse(path)
    } catch StoreError.notFound(let path) where path == files.store {
      return .changed(path)
    } catch StoreError.unusualFile(let path, _, _) where path == files.store {
      return .changed(path)
    } catch {
      return nil  // what was found first is what there is to say
    }
  }

  /// Runs a body that reads the store. An error of it is replaced where another process interfered.
  func reading<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      throw interference() ?? error
    }
  }
}

extension MigrationResult {
  /// Whether the verdict rests on what was read of the store.
  var isAboutStore: Bool {
    switch ending {
    case .badInput, .inputOutput, .fatal: true
    case .done, .cannotCreateOutput, .resumable, .locked, .engineUnavailable, .usage,
      .configuration:
      false
    }
  }
}
