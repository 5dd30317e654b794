import GodwitKeyedArchive
import Testing

@testable import GodwitExpressions

@Suite struct `A property of a bucket` {
  private func value(_ text: String, _ bucket: ExpressionValue, _ other: ExpressionValue = .null)
    throws -> ExpressionValue
  {
    let objects = EvaluationObjects()
    objects.insert("Person", 1, ["bucket": bucket, "other": other])
    let scope = EvaluationScope(
      source: ObjectReference("Person", 1, in: .source), property: "result")
    return try Evaluator(access: objects, runDate: 7)
      .value(of: try ValueExpression(parsing: text), in: scope)
  }

  private func problem(_ text: String, _ bucket: ExpressionValue, _ other: ExpressionValue = .null)
    -> EvaluationProblem?
  {
    let error = #expect(throws: EvaluationError.self) { try value(text, bucket, other) }
    return error?.problem
  }

  private static let set = "godwit.bucketSetting($source.bucket, 'k', $source.other)"

  @Test(arguments: ["1500-03-01T00:00:00Z", "0001-01-01T00:00:00Z", "10000-01-01T00:00:00Z"])
  func `leaves a date of another one as it is in XML`(date: String) throws {
    let text = "<plist version=\"1.0\"><dict><key>born</key><date>\(date)</date></dict></plist>"
    guard case .string(let written) = try value(Self.set, .string(text), .string("v")) else {
      Issue.record("a text becomes something else")
      return
    }
    #expect(written.contains("<date>\(date)</date>"))
    #expect(
      try value("godwit.bucket($source.bucket, 'born')", .string(written))
        == value("godwit.bucket($source.bucket, 'born')", .string(text)))
  }

  @Test(arguments: [
    ("{}", ExpressionValue.string("a\u{1}"), UnwritableValue.character),
    ("{ a = \"\\U0001\"; }", .string("v"), .character), ("{}", .date(1e17), .date),
    ("{ a = \"\\Ud83d\"; }", .string("v"), .unpairedText),
  ])
  func `is not set in a text that could not be read again`(
    bucket: String, value: ExpressionValue, why: UnwritableValue
  ) {
    let found = problem(Self.set, .string(bucket), value)
    #expect(
      found
        == .notRepresentable(
          what: why.words, by: "a bucket in a String attribute, which is XML,"))
    #expect(found?.description.contains(why.words) == true)
  }

  @Test func `leaves half a character of another one as it is in data`() throws {
    let half = PropertyList.unpairedText([0x61, 0xD83D])
    let bucket = ExpressionValue.data(
      PropertyList.dictionary(["half": half, "n": .integer(3)]).binary())
    guard case .data(let bytes) = try value(Self.set, bucket, .string("a\u{1}")) else {
      Issue.record("data become something else")
      return
    }
    #expect(
      try PropertyList(bytes: bytes)
        == .dictionary(["half": half, "n": .integer(3), "k": .string("a\u{1}")]))
    #expect(try value("godwit.bucket($source.bucket, 'n')", bucket) == .integer(3))
    #expect(
      problem("godwit.bucket($source.bucket, 'half')", bucket)
        == .notRepresentable(
          what: UnwritableValue.unpairedText.words, by: "an expression's text"))
  }

  @Test func `is not set where the bucket would be larger than is read`() {
    let data = [UInt8](repeating: 0, count: Bucket.sizeLimit)
    #expect(
      problem(Self.set, .null, .data(data))
        == .tooLarge(what: "bytes in one bucket", limit: Bucket.sizeLimit))
  }

  @Test func `is none in what NSKeyedArchiver wrote`() {
    let archive: PropertyList = .dictionary([
      "$archiver": .string("NSKeyedArchiver"), "$objects": .array([.string("$null")]),
    ])
    #expect(
      problem(Self.set, .data(archive.binary()), .string("v"))
        == .damagedPropertyList(reason: "it is an object that NSKeyedArchiver archived"))
  }

  @Test(arguments: [
    PropertyList.wideInteger(Int128(UInt64.max)), .integer(.min), .integer(.max), .real(0.5),
    .wideInteger(Int128(Int64.max) + 1),
  ])
  func `stays the number that it is under another key`(number: PropertyList) throws {
    let copy = "godwit.bucketSetting($source.bucket, 'k', godwit.bucket($source.bucket, 'n'))"
    let bucket = ExpressionValue.data(PropertyList.dictionary(["n": number]).binary())
    guard case .data(let bytes) = try value(copy, bucket) else {
      Issue.record("data become something else")
      return
    }
    #expect(try PropertyList(bytes: bytes) == .dictionary(["n": number, "k": number]))
  }

  @Test func `is not read where two keys of it would become one`() {
    let inner: PropertyListDictionary = ["\u{E9}": .integer(1), "e\u{301}": .integer(2)]
    let bucket = PropertyList.dictionary(["n": .dictionary(inner)])
    #expect(
      problem("godwit.bucket($source.bucket, 'n')", .data(bucket.binary()))
        == .notRepresentable(
          what: "two keys that differ only in Unicode normalisation",
          by: "a dictionary of an expression"))
  }

  @Test func `is no array with a member that is nil`() {
    let list = ExpressionValue.array([.integer(1), .null, .integer(2)])
    #expect(
      problem(Self.set, .null, list)
        == .wrongKind(found: ExpressionValue.null.kind, needed: "a property-list value"))
  }
}
