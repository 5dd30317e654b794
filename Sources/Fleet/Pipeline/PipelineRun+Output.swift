import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

// An output that lies beside its store since an earlier start.
extension PipelineRun {
  /// What became of a store whose output lies beside it, written from the store, the models and the mapping models as
  /// they are now; nil where it has to be looked at. Changes nothing.
  ///
  /// What else the settings say makes no difference: the output is not written again, whatever would come out now.
  ///
  /// - Parameters:
  ///   - settings: ``settingsDigest()``.
  ///   - books: Nil for whoever wants none of what the line says beside its entry.
  func written(
    _ output: FilePath, of store: FoundStore, by known: PipelineLedger.Entry,
    under settings: String, _ books: (any StoreBooks)?
  ) throws -> Outcome? {
    guard known.verdict == .migrated, known.output == output.string,
      try Self.isThere(output, of: known),
      known.identity == (try StoreFiles(store.path).identity().name),
      try isOfSameModels(output, of: known, under: settings)
    else { return nil }
    let isUntouched = Self.isUntouched(output, of: known)
    var words = "Its output was written before"
    if SettingsDigest.areSame(known.settings, settings) {
      // What was set aside is written again beside an output that is as it was written.
      if try isUntouched && known.lacksRejects && !StoreFiles(output).hasLogs { return nil }
    } else {
      // It may be that of a start under the new settings, which was killed before it wrote that down.
      if try !isUntouched && DurableFile.exists(directory(of: store).journal) { return nil }
      words += ", by another build or under other settings, and stays as it is"
      if !SettingsDigest.areOfSameModels(known.settings, settings) {
        words += "; whether by these mapping models is not known"
      }
    }
    return Outcome(store: store, result: earlier(known, words, books), isEarlier: true)
  }

  /// Whether an output was written by these models and mapping models, as far as anything tells.
  private func isOfSameModels(
    _ output: FilePath, of known: PipelineLedger.Entry, under settings: String
  ) throws -> Bool {
    if SettingsDigest.areOfSameModels(known.settings, settings) { return true }
    // The whole is another under each build of a team's own code: a text of an earlier version tells nothing of models.
    return try template.ownCodeDigest != nil && SettingsDigest.isOfEarlierVersion(known.settings)
      && StoreLook(output).isOf(template.destinations())
  }

  /// What becomes of a store whose store of rejects is to be written again, where what is made of it now turns out
  /// not to be the output, see ``MigrationResult/differs(fromOutput:)``: one of an expression with `now()` never is.
  ///
  /// - Returns: Nil for any other store. The entry is for the progress: the next start is content with the output.
  func keptOutput(
    of store: FoundStore, _ known: PipelineLedger.Entry?, _ books: any StoreBooks
  ) -> (outcome: Outcome, entry: PipelineLedger.Entry)? {
    // Asked before every store: most have no rejects.
    guard var entry = known, (try? entry.lacksRejects) == true, !isForgotten(store, books),
      let output = request(for: store).output
    else { return nil }
    // Nothing is written again beside one that may be somebody's by now.
    entry.outputMark = nil
    guard
      let outcome = try? written(output, of: store, by: entry, under: books.settings, books)
    else { return nil }
    return (outcome, entry)
  }

  /// Whether an output that was written before is still a database, with its external data. Emptied or overwritten,
  /// it is no reason to call its store migrated.
  ///
  /// An application may have taken it up, and somebody may have put another file there. That one is not of its
  /// source's version.
  static func isThere(_ output: FilePath, of known: PipelineLedger.Entry) throws -> Bool {
    guard try FileKind(at: output) == .regular, try StoreFiles.isDatabase(output) else {
      return false
    }
    if known.outputHasFiles == true,
      try FileKind(at: StoreFiles(output).externalDataFolder) != .folder
    {
      return false
    }
    if isUntouched(output, of: known) { return true }
    guard let version = StoreLook(output).result.source else { return false }
    return version != StoreLook(FilePath(known.store)).result.source
  }

  /// Whether an output is as it was written.
  private static func isUntouched(_ output: FilePath, of known: PipelineLedger.Entry) -> Bool {
    // The mark may have been taken later than the output was written, and the clock may have been ahead then.
    guard let mark = PipelineLedger.OutputMark(output) else { return false }
    return mark == known.outputMark && mark.time <= known.time
  }
}

extension MigrationResult {
  /// Whether an output is refused as another than what the migration makes. Any other reason for which none can be
  /// written may pass.
  func differs(fromOutput output: String?) -> Bool {
    // It may come from another process: nothing but its reason tells the error.
    output.map {
      reasons == MigrationResult(failing: store, with: FleetError.outputDiffers(path: $0)).reasons
    } ?? false
  }
}

extension PipelineLedger.Entry {
  /// Whether the store that objects were set aside in is gone.
  var lacksRejects: Bool {
    get throws { try rejects.map { try FileKind(at: FilePath($0)) == .none } ?? false }
  }
}
