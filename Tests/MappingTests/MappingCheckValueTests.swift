import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `A check of values` {
  private func findings(
    _ type: AttributeType, _ expression: String, filter: String? = nil
  ) throws -> [String] {
    let tag = entity("Tag", attribute("weight", .integer64), attribute("label"))
    let source = try model(
      entity(
        "Note", attribute("number", .integer64), attribute("real", .double), attribute("text"),
        attribute("day", .date), attribute("bytes", .binary), attribute("link", .uri),
        attribute("key", .uuid), attribute("anything", .transformable), toMany("tags", "Tag"),
        toOne("tag", "Tag")), tag)
    let destination = try model(entity("Note", attribute("made", type)), tag)
    let properties = PropertyMappings(attributes: [
      PropertyMapping(name: "made", expression: try ValueExpression(parsing: expression))
    ])
    var mappings = [
      EntityMapping(
        name: "N", type: .transform(source: "Note", destination: "Note", properties)),
      EntityMapping(
        name: "T", type: .transform(source: "Tag", destination: "Tag", PropertyMappings())),
    ]
    if let filter {
      mappings[0].sourceSelection = .filter(try PredicateExpression(parsing: filter))
    }
    return MappingCheck(
      MappingModel(entityMappings: mappings), source: source, destination: destination
    ).findings.filter { $0.mapping == "N" }.map {
      "\($0.severity) \($0.kind.rawValue): \($0.message)"
    }
  }

  @Test(arguments: [
    // What depends on the row.
    "sqrt($source.number)", "sqrt($source.number - 2)", "1 / $source.number",
    "modulus:by:($source.number, $source.real)", "leftshift:by:($source.number, $source.number)",
    "{1, 2}[$source.number]", "length($source.text)", "CAST($source.text, \"NSNumber\")",
    "godwit.integer($source.text)", "godwit.seconds(godwit.date($source.text, \"yyyy\"))",
    "godwit.seconds(godwit.date($source.text, $source.text))", "random:($source.number)",
    "godwit.data($source.text, $source.text).length",
    "FUNCTION($source.text, \"substringFromIndex:\", $source.number).length",
    "FUNCTION($source.text, \"substringFromIndex:\", 5).length",
    "godwit.bucket($source.bytes, \"key\")", "bitwiseAnd:with:($source.real, 1)",
    // What is not known.
    "sqrt($source.anything)", "TERNARY($source.anything > 1, 1, 0)",
    // Nil is in no order, and has every key.
    "sqrt(NULL)", "TERNARY($source.number > NULL, 1, 0)", "TERNARY($source.tags == NULL, 1, 0)",
    // Collections.
    "$source.tags.@sum.weight", "$source.tags.@max.weight", "$source.tags.@max.label.length",
    "sum($source.tags.weight)", "max:($source.number, $source.real, 1, 2, 3, 4, 5, 6, 7, 8)",
    "TERNARY(ANY $source.tags.weight > 1, 1, 0)", "TERNARY($source.tag IN $source.tags, 1, 0)",
    "TERNARY(ALL $source.tags.label LIKE \"a*\", 1, 0)", "$source.tags[FIRST].weight",
    "TERNARY($source.number BETWEEN {1, $source.real}, 1, 0)",
    "SUBQUERY($source.tags, $t, $t.weight > $source.number).@count",
    "TERNARY($source.text CONTAINS \"a\", 1, 0)", "TERNARY($source.number == $source.real, 1, 0)",
    // Either of two.
    "length(TERNARY($source.number > 1, $source.text, $source.number))",
    "FUNCTION($source.tags, \"count\")", "FUNCTION($source, \"objectID\").path.length",
    "FETCH(FUNCTION($manager, \"fetchRequestForSourceEntityNamed:predicateString:\", \"Tag\", "
      + "\"weight > 1\"), FUNCTION($manager, \"valueForKey:\", \"sourceContext\"), YES)",
    "SUBQUERY(FETCH(FUNCTION($manager, \"fetchRequestForSourceEntityNamed:predicateString:\", \"Tag\", "
      + "\"TRUEPREDICATE\"), $manager.sourceContext, NO), $x, $x.weight > $source.number).@count",
  ])
  func `finds nothing where a row can have one`(expression: String) throws {
    #expect(try findings(.integer64, expression) == [])
  }

  @Test(arguments: [
    ("$source.tags.@sum.label", "a text stands where a number is needed"),
    ("$source.tags.@avg.label", "a text stands where a number is needed"),
    ("sqrt($source.text)", "a text stands where a number is needed"),
    ("length($source.number)", "a number stands where a text is needed"),
    ("length($source.tag)", "an object stands where a text is needed"),
    ("sum($source.tags)", "an object stands where a number is needed"),
    ("TERNARY($source.day > 1, 1, 0)", "a date and a number have no order. Convert one of them"),
    (
      "TERNARY($source.tags.weight > 1, 1, 0)",
      "a set and a number have no order. Convert one of them"
    ),
    ("TERNARY($source.number LIKE \"1*\", 1, 0)", "a number stands where a text is needed"),
    ("TERNARY($source.text IN 5, 1, 0)", "a number stands where a collection or text is needed"),
    ("TERNARY($source.number IN 5, 1, 0)", "a number stands where a collection or text is needed"),
    (
      "TERNARY($source.number BETWEEN {1}, 1, 0)",
      "an array stands where a pair of bounds is needed"
    ),
    (
      "SUBQUERY($source.tags, $t, $t.label > 1).@count",
      "a text and a number have no order. Convert one of them"
    ),
    ("godwit.seconds($source.text)", "a text stands where a date is needed"),
    (
      "FUNCTION($source.text, \"stringByAppendingString:\", $source.number).length",
      "a number stands where a text is needed"
    ),
    (
      "FUNCTION($source.tags, \"componentsJoinedByString:\", \",\").length",
      "an object stands where a text or number is needed"
    ),
    ("{1, 2}[$source.text]", "a text stands where a whole number is needed"),
    ("{1, 2}[5]", "the index is outside the collection or text, or within a character"),
    ("1 / 0", "division by zero. Guard it with TERNARY"),
    ("modulus:by:($source.number, 0)", "division by zero. Guard it with TERNARY"),
    ("1 / (2 - 2) + $source.number", "division by zero. Guard it with TERNARY"),
    ("godwit.integer(\"many\")", "the text does not spell a whole number"),
    ("mode({1, 2}) + 1", "an array stands where a number is needed"),
  ])
  func `says what has no value in any row`(expression: String, problem: String) throws {
    let found = try findings(.integer64, expression)
    #expect(found.count == 1)
    #expect(found.first?.hasPrefix("error type-mismatch: \(problem), in: ") == true)
  }

  @Test(arguments: [
    ("number == \"1\"", "a number is never equal to a text. Convert one of them"),
    ("text != 5", "a text is never equal to a number. Convert one of them"),
    ("number IN {\"1\", \"2\"}", "a number is never equal to a text. Convert one of them"),
    (
      "key == \"0E984725-C51C-4BF4-9960-E1C80E27ABA0\"",
      "a UUID is never equal to a text. Convert one of them"
    ),
    ("NOT day == 0", "a date is never equal to a number. Convert one of them"),
    (
      "number BEGINSWITH \"1\"",
      "a number stands where a text is needed, in: number BEGINSWITH \"1\""
    ),
    (
      "ANY tags.label > 3",
      "a text and a number have no order. Convert one of them, in: ANY tags.label > 3"
    ),
  ])
  func `refuses a filter that no object can answer`(filter: String, problem: String) throws {
    #expect(try findings(.integer64, "1", filter: filter) == ["error type-mismatch: \(problem)"])
  }

  @Test(arguments: [
    "number == 1", "number == YES", "real == 1", "text == \"a\"", "number == nil",
    "text IN {\"a\"}",
    "anything == 1", "tag == nil", "day > CAST(0, \"NSDate\")",
    "key == CAST(\"x\", \"NSUUID\") OR TRUEPREDICATE",
    "\"a\" IN tags.label", "ALL tags.weight > number", "tags.@count == 0",
  ])
  func `takes a filter that one can`(filter: String) throws {
    #expect(
      try findings(.integer64, "1", filter: filter).filter { !$0.contains("does not spell") } == [])
  }

  @Test func `warns of an equality in an expression that never holds`() throws {
    #expect(
      try findings(.integer64, "TERNARY($source.number == \"a\", 1, 0)") == [
        "warning type-mismatch: a number is never equal to a text. Convert one of them"
      ])
  }

  @Test func `warns of what is written to fail in a branch`() throws {
    #expect(
      try findings(.integer64, "TERNARY($source.number == nil, 1 / 0, $source.number)") == [
        "warning type-mismatch: division by zero. Guard it with TERNARY, in: 1 / 0"
      ])
  }

  @Test(arguments: [
    ("$source.objectID.foo", "error unknown-key: a URI has no key foo"),
    ("$source.entity.nam", "error unknown-key: a composite has no key nam. Did you mean name?"),
    (
      "$source.description", "error unknown-key: the source entity Note has no property description"
    ),
    (
      "FUNCTION($source.objectID, \"foo\")",
      "error unknown-selector: there is no selector foo here (character 28)"
    ),
    (
      "FUNCTION(FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", "
        + "\"T\", $source.tags), \"count\")",
      "error yields-nothing: what became of other objects is known in relationships only, when all are there"
    ),
    (
      "FETCH(FUNCTION($manager, \"fetchRequestForSourceEntityNamed:predicateString:\", \"Tag\", "
        + "\"weight > 1\"), FUNCTION($manager, \"valueForKey:\", \"destinationContext\"), YES)",
      "error type-mismatch: nothing can be fetched from the destination while it is being made. Use "
        + "$manager.sourceContext"
    ),
    (
      "FETCH(FUNCTION($manager, \"fetchRequestForSourceEntityNamed:predicateString:\", \"Tag\", "
        + "\"weight > $source.number\"), $manager.sourceContext, YES)",
      "error unknown-variable: there is no $source in the predicate of a fetch. The one of "
        + "SUBQUERY(FETCH(…), $x, …) may name it"
    ),
    (
      "FETCH(FUNCTION($manager, \"fetchRequestForSourceEntityNamed:predicateString:\", \"Tag\", "
        + "\"weight > $sorce.number\"), $manager.sourceContext, YES)",
      "error unknown-variable: there is no variable $sorce"
    ),
    ("mode({1, 2})", "error type-mismatch: a collection cannot be the value of an attribute"),
  ])
  func `knows what objects, contexts and collections answer`(expression: String, finding: String)
    throws
  {
    #expect(try findings(.integer64, expression) == [finding])
  }
}
