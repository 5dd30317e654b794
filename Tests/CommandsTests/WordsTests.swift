import Foundation
import GodwitFleet
import GodwitPersistentStore
import GodwitPlanning
import Testing

@testable import GodwitCommands

@Suite struct `A byte size` {
  @Test(arguments: [
    ("1", 1 as Int64),
    ("4096", 4096),
    ("16MiB", 16 << 20),
    ("16mib", 16 << 20),
    ("16M", 16 << 20),  // as dd(1) and sort(1) have it
    ("2 GiB", 2 << 30),
    ("500kB", 500_000),
    ("7B", 7),
    ("8191PiB", nil),  // no such unit
    ("", nil), ("MiB", nil), ("0", nil), ("-1", nil), ("1.5MiB", nil), ("1MiBMiB", nil),
    ("٣", nil),  // digits of other scripts
    ("9223372036854775807", .max),
    ("9223372036854775808", nil), ("9223372036854775807KiB", nil),  // too large to count
  ])
  func `is a whole number with at most one unit`(text: String, bytes: Int64?) {
    #expect(ByteSize(argument: text)?.bytes == bytes)
  }

  @Test(arguments: [
    (0 as Int64, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"),
    (16 << 20, "16 MiB"), (Int64.max, "8388608 TiB"),
  ])
  func `reads well`(bytes: Int64, text: String) {
    #expect(ByteSize.text(bytes) == text)
  }
}

@Suite struct `Numbers` {
  @Test(arguments: [
    (0 as Int64, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567"), (-1000, "-1 000"),
    (.min, "-9 223 372 036 854 775 808"),
  ])
  func `stand in groups of three`(number: Int64, text: String) {
    #expect(grouped(number) == text)
  }

  @Test(arguments: [
    (0.04, "0.0 s"), (1.25, "1.3 s"), (12.4, "12 s"), (125, "2 min 5 s"), (7_260, "2 h 1 min"),
    (.infinity, "long"), (.nan, "long"),
  ])
  func `of seconds are as exact as a reader needs`(seconds: Double, text: String) {
    #expect(ProgressDisplay.text(seconds: seconds) == text)
  }
}

@Suite struct `An exit status` {
  @Test(arguments: [
    (MigrationResult.Ending.done, 0 as Int32), (.fatal, 1), (.locked, 11), (.usage, 64),
    (.badInput, 65), (.engineUnavailable, 69), (.cannotCreateOutput, 73), (.inputOutput, 74),
    (.resumable, 75),
  ])
  func `never changes its meaning`(ending: MigrationResult.Ending, number: Int32) {
    #expect(ExitStatus(ending).rawValue == number)
  }
}

@Suite struct `A report` {
  @Test func `says where the source is kept`() {
    var result = MigrationResult(store: "a.sqlite", verdict: .migrated, ending: .done)
    (result.source, result.destination) = ("Recipes", "Recipes 2")
    (result.rows, result.seconds, result.backup) = (12_345, 2, "a.sqlite.godwit-backup-1")
    #expect(
      ResultReport.lines(result, isPlan: false) == [
        "a.sqlite: migrated from Recipes to Recipes 2, 12 345 rows in 2.0 s",
        "  the source is kept as a.sqlite.godwit-backup-1",
      ])
  }

  @Test(arguments: [true, false])
  func `advises to accept damage only where that was not done`(isAccepted: Bool) {
    let advice = ResultReport.advice(acceptingDamage: isAccepted)
    #expect(advice.contains("carry on with --accept-damage") == !isAccepted)
    #expect(advice.contains("godwit repair"))
  }

  @Test(arguments: [(StoreFinding.Kind.rows, false), (.index, true), (.file, false)])
  func `advises to accept no damage that is never accepted`(
    kind: StoreFinding.Kind, isTaken: Bool
  ) {
    let reason = Reason(reason: kind.rawValue, message: "x")
    let advice = ResultReport.advice(acceptingDamage: false, [reason])
    #expect(advice.contains("carry on with --accept-damage") == isTaken)
  }

  @Test func `of a plan tells what becomes of what`() throws {
    let plan = """
      {"bytes": 10, "destinationChecksum": "", "fingerprint": "", "mappingModels": ["a.yaml"],
       "mappings": [
         {"destination": "Image", "hasNewKeys": true, "name": "NoteToImage", "source": "Note",
          "takes": "image != nil"},
         {"destination": "Note", "hasNewKeys": false, "name": "Notes", "policy": "P",
          "source": "Note"},
         {"hasNewKeys": false, "name": "Old", "source": "Old"}],
       "shards": 1, "sourceChecksum": "", "tables": []}
      """
    var result = MigrationResult(store: "a.sqlite", verdict: .migrated, ending: .done)
    result.plan = try JSONDecoder().decode(MigrationResult.Plan.self, from: Data(plan.utf8))
    #expect(
      ResultReport.lines(result, isPlan: true) == [
        "a.sqlite: would be migrated",
        "  1 shard, 10 bytes of rows",
        "  by a.yaml",
        "    NoteToImage  Note → Image, where image != nil, new keys",
        "    Notes        Note → Note, policy P",
        "    Old          Old → nothing",
      ])
    result.plan?.mappingModels = []
    #expect(ResultReport.lines(result, isPlan: true).last == "  the mapping is inferred")
  }

  @Test func `names the entity where a message does not`() {
    #expect(
      Reason(reason: "type", entity: "Recipe", property: "name", message: "is a blob").text
        == "Recipe.name: is a blob")
    #expect(
      Reason(reason: "x", entity: "Recipe", message: "Recipe is gone").text == "Recipe is gone")
    // A word of the message, or a part of one, names no entity.
    #expect(
      Reason(reason: "x", entity: "Date", property: "day", message: "Date cannot become String")
        .text
        == "Date.day: Date cannot become String")
    #expect(
      Reason(reason: "x", entity: "C", message: "its table takes the rows of P").text
        == "C: its table takes the rows of P")
    #expect(
      Reason(reason: "x", entity: "P", property: "q", message: "the values of P.q differ").text
        == "the values of P.q differ")
  }
}
