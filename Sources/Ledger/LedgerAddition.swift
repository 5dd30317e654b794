/// What was added to the format since its first version. A ledger that lacks it gets it when it is next
/// opened for writing; one that is only read is read without it.
enum LedgerAddition: CaseIterable {
  /// The table `fleet`.
  case fleet
  /// The column `waiting` of it.
  case waiting
  /// The columns `uuid` and `source_uuid` of attempts.
  case uuids
  /// The column `pipeline` of the table `quarantine`.
  case quarantineOwners
  /// The columns `resumed` and `worked` of runs.
  case workedTime
  /// The table `starts`.
  case starts
  /// The column `message` of runs.
  case startMessage

  /// Gives a row where a ledger has it.
  fileprivate var question: String {
    switch self {
    case .fleet: "SELECT 1 FROM sqlite_schema WHERE name = 'fleet'"
    case .waiting:
      // A table that is made now has it.
      """
      SELECT 1
      WHERE EXISTS (SELECT 1 FROM pragma_table_info('fleet') WHERE name = 'waiting')
        OR NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'fleet')
      """
    case .uuids: "SELECT 1 FROM pragma_table_info('attempts') WHERE name = 'source_uuid'"
    case .quarantineOwners:
      "SELECT 1 FROM pragma_table_info('quarantine') WHERE name = 'pipeline'"
    case .workedTime: "SELECT 1 FROM pragma_table_info('runs') WHERE name = 'worked'"
    case .starts: "SELECT 1 FROM sqlite_schema WHERE name = 'starts'"
    case .startMessage: "SELECT 1 FROM pragma_table_info('runs') WHERE name = 'message'"
    }
  }

  func make(in ledger: Ledger) throws {
    switch self {
    case .fleet: try ledger.makeFleet()
    case .waiting: try ledger.connection.execute(LedgerFormat.waiting)
    case .uuids: try ledger.addUUIDs()
    case .quarantineOwners: try ledger.addQuarantineOwners()
    case .workedTime: try ledger.addWorkedTime()
    case .starts: try ledger.addStarts()
    case .startMessage: try ledger.connection.execute("ALTER TABLE runs ADD COLUMN message TEXT")
    }
  }
}

extension Ledger {
  func has(_ addition: LedgerAddition) -> Bool { additions.contains(addition) }

  func knownAdditions() throws -> Set<LedgerAddition> {
    try Set(
      LedgerAddition.allCases.filter { addition in
        var isThere = false
        try forEach(addition.question) { _ in isThere = true }
        return isThere
      })
  }
}
