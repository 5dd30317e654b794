import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitSQLite

/// A ledger that several threads write, one at a time, and that loses nothing because somebody reads it
/// for long, or because its volume is full for a while: what cannot be written yet is kept, and written
/// with what comes after it.
///
/// Unchecked, since a connection belongs to whoever holds the lock, and to nobody else.
final class PatientLedger: @unchecked Sendable {
  typealias Change = (Ledger) throws -> Void

  private struct Undone: Error {}

  private let lock = NSLock()
  private let open: () throws -> Ledger
  private var ledger: Ledger?
  private var isGivenUp = false
  /// What is to be written, the oldest first.
  private var kept: [Change] = []
  /// What was in the way the last time.
  private var obstacle: (any Error)?
  private var nextTry = ContinuousClock.now

  /// A wait for a lock costs some seconds: not one for each change.
  private static let pause = Duration.seconds(5)

  /// - Throws: What shows that the file is somebody else's, or of a later version.
  init(open: @escaping () throws -> Ledger) throws {
    self.open = open
    do {
      ledger = try open()
    } catch  where Self.passes(error) {
      (obstacle, nextTry) = (error, .now + Self.pause)
    } catch  where Self.isDoneWithout(error) {
      (obstacle, isGivenUp) = (error, true)
    }
  }

  /// Whether a run begins where the ledger cannot be opened for that.
  static func isDoneWithout(_ error: any Error) -> Bool {
    switch error {
    case is SQLiteError: true
    case let error as DurabilityError: error.isNoFile
    case let error as LedgerError: error.isDamage
    default: false
    }
  }

  /// Whether it passes by itself, or when somebody makes room.
  private static func passes(_ error: any Error) -> Bool {
    if let error = error as? SQLiteError { return error.isBusy || error.isOutOfSpace }
    return (error as? DurabilityError)?.isOutOfSpace ?? false
  }

  /// True for a ledger that was begun here, or that could not be opened: nothing is known to be in it.
  var isNew: Bool { locked { ledger?.isNew ?? true } }

  /// True for a ledger that was begun here where no file was.
  var hasBegunFile: Bool { locked { ledger.map { $0.isNew && $0.note == nil } ?? false } }

  var note: String? { locked { ledger?.note } }

  /// Why something is not written; nil where all is.
  var missing: (any Error)? {
    locked { isGivenUp || !kept.isEmpty ? obstacle : nil }
  }

  /// Makes a change, together with those that are kept.
  ///
  /// - Parameters:
  ///   - isLast: Nothing comes after it that could take it along.
  ///   - isFollowed: Something comes at once that takes it along, so that both are one transaction.
  func change(isLast: Bool = false, isFollowed: Bool = false, _ change: @escaping Change) {
    locked {
      guard !isGivenUp else { return }
      kept.append(change)
      guard isLast || ContinuousClock.now >= nextTry, !isFollowed else { return }
      let changes = kept
      let isMade: Void? = attempt { ledger in
        for change in changes { try change(ledger) }
      }
      if isMade != nil { kept = [] }
    }
  }

  /// Makes a change now, or not at all. For the first one: nothing is kept yet.
  ///
  /// - Returns: Whether it is made.
  func changeNow(_ change: Change) -> Bool {
    locked {
      !isGivenUp && attempt(change) != nil
    }
  }

  /// What the ledger says, with what is still to be written in it; nil where it cannot be asked.
  func ask<Answer>(_ question: (Ledger) throws -> Answer) -> Answer? {
    locked {
      guard !isGivenUp else { return nil }
      // A transaction that changes nothing waits for whoever reads, too.
      guard !kept.isEmpty else { return attempt(isWriting: false, question) }
      var answer: Answer?
      let changes = kept
      let _: Void? = attempt { ledger in
        for change in changes { try change(ledger) }
        answer = try question(ledger)
        throw Undone()
      }
      return answer
    }
  }

  /// Lets the body use the ledger; nil where there is none.
  func using<Result>(_ body: (Ledger) throws -> Result) rethrows -> Result? {
    try locked { try ledger.map { try body($0) } }
  }

  private func attempt<Result>(
    isWriting: Bool = true, _ body: (Ledger) throws -> Result
  ) -> Result? {
    do {
      let opened = try ledger ?? self.open()
      ledger = opened
      return isWriting ? try opened.writing { try body(opened) } : try body(opened)
    } catch is Undone {
      return nil
    } catch {
      obstacle = error
      if Self.passes(error) {
        nextTry = .now + Self.pause
      } else {
        (isGivenUp, ledger, kept) = (true, nil, [])
      }
      return nil
    }
  }

  private func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body()
  }
}

extension DurabilityError {
  /// Whether it says that there is no ledger to be had, and not that there is somebody else's.
  fileprivate var isNoFile: Bool {
    if case .notRegular = self { true } else { errno != nil }
  }
}
