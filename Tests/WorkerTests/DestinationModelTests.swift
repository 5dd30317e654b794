import Foundation
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitWorker

@Suite struct `A default value of the destination model` {
  private let rows = "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZK) VALUES (1, 1, 1, 'x'), (2, 1, 1, 'y')"
  private let mapping = """
    mapping-model: 1
    entity-mappings:
      - { source: A, destination: A }
    """

  private func problems(
    _ property: PropertyDescription, _ mapping: String? = nil, rows: String? = nil
  ) throws -> [String] {
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("k"))], to: [entity("A", attribute("k"), property)],
      rows: rows ?? self.rows)
    do {
      _ = try fixture.plan(mapping)
      return []
    } catch let error as ModelError {
      #expect(error.description.hasPrefix("2 is not a valid model. "))
      return error.problems.map {
        "\($0.entity?.rawValue ?? "").\($0.property ?? "") \($0.message)"
      }
    }
  }

  @Test(arguments: [
    (AttributeType.integer16, StoredDefault.integer(40_000), "is outside of Integer 16"),
    (.integer32, .integer(1 << 31), "is outside of Integer 32"),
    (.uuid, .blob([1, 2]), "is not a 16-byte UUID"),
  ])
  func `that its type cannot hold is the model's fault`(
    type: AttributeType, value: StoredDefault, fault: String
  ) throws {
    let expected = ["A.n The default value of A.n \(fault). Give it another one."]
    #expect(try problems(attribute("n", type, default: value)) == expected)
    #expect(try problems(attribute("n", type, optional: false, default: value)) == expected)
    #expect(try problems(attribute("n", type, default: value), mapping) == expected)
    #expect(try problems(attribute("n", type, default: value), rows: "") == [], "nobody gets it")
  }

  @Test(arguments: [
    (AttributeType.string, StoredDefault.text("ab"), ValidationRule.minimumLength(3)),
    (.string, .text("abc"), .maximumLength(2)), (.string, .text("abc"), .matches("[0-9]+")),
    (.integer16, .integer(5), .minimum(6)), (.double, .real(5), .maximum(4)),
  ])
  func `that validation refuses is, too, where mapping models validate`(
    type: AttributeType, value: StoredDefault, rule: ValidationRule
  ) throws {
    let property = attribute("n", type, default: value, rule)
    #expect(try problems(property, mapping).count == 1)
    // Core Data does not validate what it infers.
    #expect(try problems(property) == [])
  }

  @Test(arguments: [
    nil,
    """
    mapping-model: 1
    entity-mappings:
      - { source: A, destination: A }
      - { source: B, destination: B }
    """,
  ])
  func `that no object gets is no reason to refuse others of its table`(mapping: String?) throws {
    let inherited = EntityDescription(name: "B", superentity: "A", properties: [])
    var after = inherited
    after.properties = [attribute("n", .integer16, default: .integer(40_000))]
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("k")), inherited], to: [entity("A", attribute("k")), after],
      rows: rows)
    _ = try fixture.plan(mapping)
  }

  @Test func `that keeps the rules is given`() throws {
    let property = attribute("n", .integer16, default: .integer(7), .minimum(7), .maximum(7))
    #expect(try problems(property) == [] && problems(property, mapping) == [])
  }
}

@Suite struct `A table that SQLite cannot work with alone` {
  @Test(arguments: [
    "CREATE TABLE ap (a CHECK (nosuch(a) IS NULL))",
    "CREATE TABLE ap (a); CREATE INDEX api ON ap (nosuch(a))",
    """
    CREATE TABLE ap (a); CREATE INDEX api ON ap (a); PRAGMA writable_schema = ON;
    UPDATE sqlite_master SET sql = 'CREATE INDEX api ON ap (a COLLATE nosuch)' WHERE name = 'api'
    """,
  ])
  func `stops the plan, with its name and what it needs`(sql: String) throws {
    let fixture = try MigrationFixture(
      from: [entity("Row", attribute("a"))], to: [entity("Row", attribute("b"))], rows: "")
    let store = try Connection(
      path: fixture.folder.appending("source.sqlite").string, mode: .readWrite)
    try store.registerFunctionStubs(["nosuch"])
    try store.execute(sql)
    try store.close()
    #expect {
      _ = try fixture.outcome()
    } throws: {
      guard case PlanError.unsupported = $0 else { return false }
      return "\($0)".contains("the table ap") && "\($0)".contains("nosuch")
    }
  }

  /// SQLite takes either for the table `ap` of the file.
  @Test(arguments: ["CREATE TEMP TABLE ap (a)", "CREATE TABLE ap (a); DROP TABLE ZROW"])
  func `stops the plan where its statement would do more than make it`(sql: String) throws {
    let fixture = try MigrationFixture(
      from: [entity("Row", attribute("a"))], to: [entity("Row", attribute("b"))],
      rows: """
        CREATE TABLE ap (a); INSERT INTO ap VALUES (1); PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = '\(sql)' WHERE name = 'ap'
        """)
    #expect {
      _ = try fixture.outcome()
    } throws: {
      guard case PlanError.unsupported = $0 else { return false }
      return "\($0)".contains("the table ap") && "\($0)".contains("do something else")
    }
  }
}

@Suite struct `Rows of the application that break their own CHECK` {
  @Test func `are carried as they are`() throws {
    let fixture = try MigrationFixture(
      from: [entity("Row", attribute("a"))], to: [entity("Row", attribute("b"))],
      rows: """
        CREATE TABLE ap (a CHECK (a > 5)); PRAGMA ignore_check_constraints = ON;
        INSERT INTO ap VALUES (1)
        """)
    #expect(try fixture.migrate().rows("SELECT a FROM ap") == [[.integer(1)]])
  }
}

@Suite struct `An index of the application on a table of the model` {
  @Test func `is noted and not read where SQLite cannot read it alone`() throws {
    let fixture = try MigrationFixture(
      from: [entity("Row", attribute("a"))], to: [entity("Row", attribute("b"))], rows: "")
    let path = fixture.folder.appending("source.sqlite")
    let store = try Connection(path: path.string, mode: .readWrite)
    try store.registerFunctionStubs(["nosuch"])
    try store.execute("CREATE INDEX mine ON ZROW (nosuch(ZA))")
    try store.close()
    let plan = try fixture.plan()
    #expect(plan.notes.contains { $0.contains("The index mine on ZROW is not Core Data's") })
    let source = try Connection(path: path.string, mode: .readOnly)
    let findings = try plan.audits.flatMap { try StoreSoundness.run($0, on: source) }
    #expect(!findings.isEmpty && findings.allSatisfy { $0.kind == .note })
    #expect(findings.contains { $0.message.contains("nosuch") })
  }
}

@Suite struct `A table of the application that refers to the model's` {
  private func notes(_ mapping: String? = nil, to destination: [EntityDescription]) throws
    -> [String]
  {
    let fixture = try MigrationFixture(
      from: [entity("Emp", attribute("n"))], to: destination,
      rows: """
        CREATE TABLE note (id INTEGER PRIMARY KEY, emp INTEGER REFERENCES zemp (Z_PK));
        CREATE TABLE other (id INTEGER PRIMARY KEY REFERENCES note (id));
        """)
    return try fixture.plan(mapping).notes.filter { $0.contains("refers to") }
  }

  @Test func `is noted where its objects go elsewhere`() throws {
    let kept = entity("Emp", attribute("n"), attribute("z"))
    #expect(try notes(to: [kept]) == [])
    let renamed = EntityDescription(
      name: "Person", renamingIdentifier: "Emp", properties: kept.properties)
    #expect(
      try notes(to: [renamed]) == [
        "The table note refers to ZEMP, whose objects go to ZPERSON. The reference is carried as "
          + "it is."
      ])
    #expect(
      try notes(to: [entity("Dept")]) == [
        "The table note refers to ZEMP, whose objects have no successor. The reference is carried "
          + "as it is."
      ])
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: Emp, destination: Emp }
      """
    #expect(
      try notes(mapping, to: [kept]) == [
        "The table note refers to ZEMP by keys of the source, which are carried as they are."
      ])
  }

  // SQLite asks for an index that keeps just the named columns unique.
  @Test(
    arguments: [
      ("ZN", [["n"]], false), ("zn", [["m"], ["n"]], false), ("ZN", [], true),
      ("ZN", [["n", "m"]], true), ("ZM, ZK", [["k", "m"]], false),
      ("ZK, ZM", [["k"], ["m"]], true), ("Z_PK", [], false),
      ("ZK", [], false),  // nor is it in the source
    ] as [(String, [[String]], Bool)])
  func `is noted where nothing keeps the columns unique any more`(
    columns: String, constraints: [[String]], isNoted: Bool
  ) throws {
    let foreign = columns.contains(",") ? "(a, b)" : "(a)"
    func emp(_ constraints: [[String]], _ more: PropertyDescription...) -> EntityDescription {
      EntityDescription(
        name: "Emp", properties: [attribute("n"), attribute("m"), attribute("k")] + more,
        uniquenessConstraints: constraints)
    }
    let fixture = try MigrationFixture(
      from: [emp([["n"], ["m", "k"]])], to: [emp(constraints, attribute("z"))],
      rows: "CREATE TABLE note (a, b, FOREIGN KEY \(foreign) REFERENCES ZEMP (\(columns)))")
    let notes = try fixture.plan().notes.filter { $0.contains("refers to") }
    #expect(notes.count == (isNoted ? 1 : 0))
    #expect(notes.allSatisfy { $0.contains("unique in the new store. The reference is carried") })
  }

  @Test func `is noted where it names pairs, of which some go elsewhere`() throws {
    let ends = [
      entity("A", toMany("bs", "B", inverse: "as")), entity("B", toMany("as", "A", inverse: "bs")),
    ]
    let fixture = try MigrationFixture(
      from: ends + [entity("Sub", parent: "B")], to: ends + [entity("Sub")],
      rows: "CREATE TABLE pairs (a, b, FOREIGN KEY (a, b) REFERENCES Z_1BS (Z_1AS, Z_2BS))")
    #expect(
      try fixture.plan().notes.filter { $0.contains("refers to") } == [
        "The table pairs refers to Z_1BS, and Z_1BS is not in the new store what it was. The reference "
          + "is carried as it is: SQLite refuses changes where foreign keys are enforced."
      ])
  }

  @Test(arguments: [true, false])
  func `is noted where it needs history that is dropped, and what fires with it is left behind`(
    isInferred: Bool
  ) throws {
    let triggers = [
      "CREATE TRIGGER stays AFTER INSERT ON ZEMP BEGIN INSERT INTO note VALUES (1, 1); END",
      "CREATE TRIGGER reads AFTER INSERT ON ZEMP BEGIN INSERT INTO note "
        + "SELECT 1, count(*) FROM ATRANSACTION; END",
      "CREATE TRIGGER fires AFTER INSERT ON ATRANSACTION BEGIN DELETE FROM note; END",
    ]
    let fixture = try MigrationFixture(
      from: [entity("Emp", attribute("n"))], to: [entity("Emp", attribute("n"), attribute("z"))],
      rows: """
        CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY);
        CREATE TABLE note (id INTEGER, change INTEGER REFERENCES atransaction (Z_PK));
        \(triggers.joined(separator: ";\n"))
        """)
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: Emp, destination: Emp }
      """
    let plan = try fixture.plan(isInferred ? nil : mapping)
    #expect(plan.triggers == (isInferred ? triggers : [triggers[0]]))
    #expect(
      plan.notes.filter { $0.contains("would not mean the same") }.count == (isInferred ? 0 : 2))
    #expect(
      plan.notes.filter { $0.contains("refers to") }
        == (isInferred
          ? []
          : [
            "The table note refers to ATRANSACTION, which is not carried. The reference is carried as "
              + "it is: SQLite refuses changes where foreign keys are enforced."
          ]))
  }
}

@Suite struct `An entity that is called as one of history's` {
  @Test func `has a row of its own in Z_PRIMARYKEY`() throws {
    let fixture = try MigrationFixture(
      from: [entity("Emp")], to: [entity("Emp"), entity("CHANGE")],
      rows: "INSERT INTO Z_PRIMARYKEY VALUES (16001, 'CHANGE', 0, 0)")
    let store = try fixture.migrate()
    #expect(
      try store.table("SELECT Z_ENT, Z_NAME FROM Z_PRIMARYKEY ORDER BY 1") == [
        "1 CHANGE", "2 Emp", "16001 CHANGE",
      ])
    let path = try #require(fixture.latest?.store)
    let model = try EntityHierarchy(
      ManagedObjectModel(entities: [entity("Emp"), entity("CHANGE")]))
    let made = try SourceStore(path: path, snapshotFolder: fixture.folder.appending("made"))
    #expect(try StoreSoundness.control(StoreBinding(made, model)) == [])
  }
}

@Suite struct `A highest key of history's` {
  /// Core Data takes new keys from it, and would give one out again that a row has.
  @Test(
    arguments: [
      (true, 1000, ["16001 1000"], nil),
      (
        true, 1001, ["16001 1001"],
        "CHANGE has no Z_MAX in Z_PRIMARYKEY as high as 1001, the highest Z_PK of ACHANGE. "
          + "The migrated store has one."
      ),
      (
        false, 7, ["16001 7"],
        "CHANGE has a table and no row of its number, 16001, in Z_PRIMARYKEY. The migrated store has one."
      ),
    ] as [(Bool, Int, [String], String?)])
  func `is never lower than a key of its table`(
    row: Bool, key: Int, expected: [String], note: String?
  ) throws {
    let fixture = try MigrationFixture(
      from: [entity("Emp", attribute("n"))], to: [entity("Emp", attribute("n"), attribute("z"))],
      rows: """
        CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER);
        INSERT INTO ACHANGE VALUES (\(key), 16001);
        \(row ? "INSERT INTO Z_PRIMARYKEY VALUES (16001, 'CHANGE', 0, 0);" : "")
        """)
    let store = try fixture.migrate()
    #expect(
      try store.table("SELECT Z_ENT, Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT >= 16000") == expected)
    #expect(try fixture.plan().notes == [note].compactMap(\.self))
  }
}
