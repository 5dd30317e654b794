import Glibc
import GodwitDurableFiles
import GodwitLedger
import GodwitObjectModel
import GodwitSQLite
import SystemPackage

/// What a pipeline's runs will need, before one is begun: its folders, their volumes, and where it
/// writes to. Nothing is changed but for a file that is written into each of those folders and
/// removed again.
package struct PipelineDoctor: Sendable {
  private let pipeline: Pipeline
  private let places: PipelinePlaces
  private let destinations: [ModelVersion]
  private let workerCount: Int

  /// - Parameters:
  ///   - destinations: What the stores are to become.
  ///   - workerCount: Of the run to come.
  package init(
    _ pipeline: Pipeline, _ places: PipelinePlaces, destinations: [ModelVersion], workerCount: Int
  ) {
    self.pipeline = pipeline
    self.places = places
    self.destinations = destinations
    self.workerCount = workerCount
  }

  package func findings() -> [Doctor.Finding] {
    var findings: [Doctor.Finding] = []
    for root in pipeline.stores.roots { findings += self.findings(ofRoot: root) }
    findings.append(state)
    findings.append(ledger)
    return findings
  }

  /// - Parameters:
  ///   - key: The pipeline's, which names the file.
  ///   - problem: Why a run would not write it, by whoever writes it; nil where nothing is known against it but what
  ///     the folder says, or the one that it will be made in.
  package func finding(
    ofOutput key: String, at file: FilePath, problem: String?
  ) -> Doctor.Finding {
    guard let problem else { return writable(key, file.folder.nearest) }
    return Doctor.Finding(
      name: key, value: problem, isGood: false, advice: "A run would end without it.")
  }

  private func findings(ofRoot root: FilePath) -> [Doctor.Finding] {
    let name = "stores in \(root)"
    guard (try? FileKind(following: root)) == .folder else {
      return [
        Doctor.Finding(
          name: name, value: "not a folder", isGood: false,
          advice: "Make it, or correct the path in \(pipeline.file).")
      ]
    }
    let search = Pipeline.Stores(
      roots: [root], include: pipeline.stores.include, exclude: pipeline.stores.exclude)
    var some = pipeline
    some.stores = search
    do {
      // Why it may miss some is told of the ledger and the state folder.
      let found = try StoreSearch(some, state: places.state)
        .run(places, destinations: destinations) { _ in }
      let bytes = found.stores.map(\.bytes).total
      var findings = [
        Doctor.Finding(
          name: name, value: "\(found.stores.count) with \(ByteSize.text(bytes))",
          isGood: found.unreadable.isEmpty && !found.stores.isEmpty,
          advice: found.unreadable.first.map {
            "\($0.path.unambiguousText) cannot be read: \($0.reason). \($0.advice)"
          }
            ?? (found.stores.isEmpty ? "Check the keys include and exclude." : nil))
      ]
      findings.append(space(for: found.stores, in: root))
      findings.append(leases(in: root))
      findings += StoreRights(found.stores, isReplaced: pipeline.commit == .replace)
        .findings(in: root)
      return findings
    } catch {
      return [
        Doctor.Finding(
          name: name, value: "\(error)", isGood: false, advice: "Let this user read the folder.")
      ]
    }
  }

  /// Every store that is not migrated leaves a backup or an output, and the largest have to be worked on. Any
  /// store may have to be migrated again.
  private func space(for stores: [FoundStore], in root: FilePath) -> Doctor.Finding {
    let name = "free space in \(root)"
    guard let free = DiskSpace.free(at: root) else {
      return Doctor.Finding(name: name, value: "the volume does not say", isGood: true)
    }
    let done = (try? doneStores) ?? []
    let waiting = stores.filter { !done.contains($0.path) }
    let isInPlace = pipeline.commit == .replace
    let needed = max(
      FleetForecast.peakBytes(
        of: waiting.map(\.bytes), keptBytes: waiting.map(\.bytes).total,
        workerCount: workerCount, isInPlace: isInPlace),
      DiskSpace.needed(
        sourceBytes: stores.map(\.bytes).max() ?? 0, externalBytes: 0, isInPlace: isInPlace))
    return Doctor.Finding(
      name: name, value: ByteSize.text(free), isGood: free > needed,
      advice: free > needed
        ? nil
        : "A run needs up to about \(ByteSize.text(needed)): \(waiting.count) "
          + "\(waiting.count == 1 ? "store is" : "stores are") not migrated. Free space, or migrate some of "
          + "them at a time with --only.")
  }

  /// Stores of which the ledger knows that they are migrated.
  private var doneStores: Set<FilePath> {
    get throws {
      var stores: Set<FilePath> = []
      let ledger = try PipelineHistory.reading(places, writes: false)
      try ledger?.forEachMigratedStore(of: places.owner.file) { stores.insert(FilePath($0)) }
      return stores
    }
  }

  /// Whether nobody else's having a store open can be found out.
  private func leases(in root: FilePath) -> Doctor.Finding {
    let name = "file leases in \(root)"
    let path = (root.resolved ?? root).appending(".godwit-doctor-\(getpid())")
    do {
      guard try Doctor.canLease(path) else {
        return Doctor.Finding(
          name: name, value: "not available", isGood: pipeline.stores.inUse == .offline,
          advice: pipeline.stores.inUse == .offline
            ? nil
            : "Stores cannot be replaced safely while applications may have them open. Close them, and "
              + "say so with stores.in-use: offline.")
      }
      return Doctor.Finding(name: name, value: "available", isGood: true)
    } catch {
      return Doctor.Finding(
        name: name, value: "\(error)", isGood: pipeline.commit != .replace,
        advice: "This user cannot write there, and so cannot replace stores.")
    }
  }

  private var state: Doctor.Finding {
    let name = "state"
    do {
      if try FileKind(following: places.state) == .folder {
        try StateFolder(places).check()
        let isHeld = try places.isInUse
        return Doctor.Finding(
          name: name, value: "\(places.state)" + (isHeld ? ", a command is at work" : ""),
          isGood: true)
      }
      try places.checkState()
      return writable(name, places.state.nearest)
    } catch let error as FleetError {
      return Doctor.Finding(
        name: name, value: "\(error)", isGood: false, advice: "A run would not begin.")
    } catch {
      return Doctor.Finding(
        name: name, value: "\(error)", isGood: false,
        advice: Doctor.adviceOfState)
    }
  }

  private var ledger: Doctor.Finding {
    do {
      let found = try Ledger(readingAt: places.ledger)
      // As who writes to it opens it.
      if found != nil {
        try RegularFile.open(places.ledger, isPrivate: true, isSole: true).close()
        guard access(places.ledger.string, W_OK) == 0 else {
          throw SQLiteError.cannotOpen(
            path: places.ledger.string, code: 8,  // SQLITE_READONLY
            message: "it cannot be written (errno \(errno))")
        }
      }
      if let loss = try PipelineHistory.lossText(places) {
        return Doctor.Finding(
          name: "ledger", value: loss, isGood: false,
          advice: "Where there is a newer copy of the ledger, put it there before the next run.")
      }
      return Doctor.Finding(
        name: "ledger", value: found == nil ? "none yet" : "\(places.ledger)", isGood: true)
    } catch let error as LedgerError where error.isDamage {
      return Doctor.Finding(
        name: "ledger", value: "\(error)", isGood: false,
        advice: "The next run sets it aside and begins a new one.")
    } catch {
      let isBegun = PatientLedger.isDoneWithout(error)
      return Doctor.Finding(
        name: "ledger", value: "\(error)", isGood: false,
        advice: (isBegun
          ? "A run begins without it, and keeps its history in the state folder until that is mended."
          : "A run would not begin. Correct that, or give another folder with --state."))
    }
  }

  private func writable(_ name: String, _ folder: FilePath) -> Doctor.Finding {
    let path = folder.appending(".godwit-doctor-\(getpid())")
    do {
      try DurableFile.write([1], to: path)
      try DurableFile.remove(path)
      return Doctor.Finding(name: name, value: "\(folder) is writable", isGood: true)
    } catch {
      return Doctor.Finding(
        name: name, value: "\(folder): \(error)", isGood: false,
        advice: "Make the folder, or let this user write there.")
    }
  }
}
