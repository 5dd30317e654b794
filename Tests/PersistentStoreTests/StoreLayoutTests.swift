import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import Testing

@Suite struct `A store layout` {
  private func sql(_ layout: StoreLayout) -> [String] { layout.statements.map(\.sql) }

  @Test func `orders columns by group, entity and name`() throws {
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: "Animal",
        properties: [
          .attribute("name", .string), .attribute("age", .integer16), .attribute("Zoo", .integer64),
          .attribute("weight", .double), .attribute("photo", .binary),
          .attribute("price", .decimal),
          .attribute("id", .uuid), .attribute("link", .uri), .attribute("shape", .transformable),
          .attribute("hidden", .string, isTransient: true), .relationship("owner", "Person"),
        ]),
      EntityDescription(
        name: "cat", superentity: "Animal", properties: [.attribute("lives", .boolean)]),
      EntityDescription(name: "Person"))
    #expect(
      sql(StoreLayout(hierarchy)) == [
        "CREATE TABLE ZANIMAL ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
          + "ZZOO INTEGER, ZAGE INTEGER, ZOWNER INTEGER, ZLIVES INTEGER, ZWEIGHT FLOAT, "
          + "ZPRICE DECIMAL, ZNAME VARCHAR, ZID BLOB, ZLINK VARCHAR, ZSHAPE BLOB, ZPHOTO BLOB )",
        "CREATE TABLE ZPERSON ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER )",
        "CREATE INDEX ZANIMAL_ZOWNER_INDEX ON ZANIMAL (ZOWNER)",
        "CREATE INDEX ZANIMAL_Z_ENT_INDEX ON ZANIMAL (Z_ENT)",
      ])
  }

  @Test(arguments: [(1_997, true), (1_998, false)])
  func `is none for more columns than SQLite makes`(count: Int, isUsable: Bool) throws {
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: "Wide", properties: (0..<count).map { .attribute("a\($0)", .integer32) }))
    let layout = StoreLayout(hierarchy)
    if isUsable { return try layout.requireUsable() }
    let error = #expect(throws: StoreError.self) { try layout.requireUsable() }
    #expect(error?.code == 134_160 && error?.description.contains("2001 columns") == true)
  }

  @Test func `tells properties of one name apart within a table`() throws {
    let hierarchy = try EntityHierarchy(
      EntityDescription(name: "A", isAbstract: true),
      EntityDescription(name: "B", superentity: "A", properties: [.attribute("text", .string)]),
      EntityDescription(
        name: "C", superentity: "A",
        properties: [.attribute("text", .string), .attribute("text1", .string)]))
    let layout = StoreLayout(hierarchy)
    #expect(layout.column(of: "text", in: "B") == "ZTEXT")
    #expect(layout.column(of: "text", in: "C") == "ZTEXT1")
    #expect(layout.column(of: "text1", in: "C") == "ZTEXT11")  // ZTEXT1 is taken
    #expect(layout.column(of: "text", in: "A") == nil)
  }

  @Test func `gives a to-one whose destination has sub-entities the number of the root`() throws {
    let hierarchy = try EntityHierarchy(
      EntityDescription(name: "Box", properties: [.relationship("content", "Thing")]),
      EntityDescription(name: "Thing"),
      EntityDescription(name: "Tool", superentity: "Thing"))
    let layout = StoreLayout(hierarchy)
    #expect(layout.entityColumn(of: "content", in: "Box") == "Z2_CONTENT")
    #expect(
      layout.tables.first?.sql
        == "CREATE TABLE ZBOX ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
        + "ZCONTENT INTEGER, Z2_CONTENT INTEGER )")
    let renumbered = StoreLayout(hierarchy, entityNumbers: ["Thing": 9])
    #expect(renumbered.entityColumn(of: "content", in: "Box") == "Z9_CONTENT")
    #expect(renumbered.entityNumbers["Tool"] == 3)
  }

  @Test func `flattens composites in declared order`() throws {
    let element = { (name: String, type: AttributeType) in
      AttributeDescription(traits: PropertyTraits(name: name), type: type)
    }
    let inner = AttributeDescription(
      traits: PropertyTraits(name: "inner"), type: .composite,
      compositeElements: [element("deep", .string)])
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: "Post",
        properties: [
          .attribute("id", .string),
          .attribute(
            "author", .composite,
            elements: [element("name", .string), element("id", .string), inner]),
          .attribute("zone", .composite, elements: []),
        ]))
    let layout = StoreLayout(hierarchy)
    #expect(layout.column(of: "id", in: "Post") == "ZID1")  // the author's comes first
    #expect(layout.column(of: "author", in: "Post") == nil)
    #expect(
      layout.leafColumns(of: "author", in: "Post").map(\.column) == ["ZNAME", "ZID", "ZDEEP"])
    #expect(layout.leafColumns(of: "author", in: "Post").last?.path == ["inner", "deep"])
    #expect(layout.leafColumns(of: "zone", in: "Post").isEmpty)
  }

  @Test func `names a join table after the lower entity and a self-join after the later name`()
    throws
  {
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: "Folder",
        properties: [
          .relationship(
            "favorites", "Folder", inverse: "favoriteFolders", isToMany: true, isOrdered: true),
          .relationship("favoriteFolders", "Folder", inverse: "favorites", isToMany: true),
        ]),
      EntityDescription(
        name: "Label",
        properties: [.relationship("notes", "Note", inverse: "labels", isToMany: true)]),
      EntityDescription(
        name: "Note",
        properties: [
          .relationship("labels", "Label", inverse: "notes", isToMany: true, isOrdered: true)
        ]))
    let layout = StoreLayout(hierarchy)
    #expect(
      layout.joinTables.map(\.sql) == [
        "CREATE TABLE Z_1FAVORITES ( Z_1FAVORITEFOLDERS INTEGER, Z_1FAVORITES INTEGER, "
          + "Z_FOK_1FAVORITES INTEGER, PRIMARY KEY (Z_1FAVORITEFOLDERS, Z_1FAVORITES) )",
        "CREATE TABLE Z_2NOTES ( Z_2LABELS INTEGER, Z_3NOTES INTEGER, Z_FOK_2LABELS INTEGER, "
          + "PRIMARY KEY (Z_2LABELS, Z_3NOTES) )",
      ])
    let labels = try #require(layout.join(of: "labels", in: "Note"))
    #expect(!labels.isFirst && labels.table.name == "Z_2NOTES")
    let favorites = try #require(layout.join(of: "favorites", in: "Folder"))
    #expect(favorites.isFirst)
    #expect(
      layout.tables[1].indexes.map(\.sql) == [
        "CREATE INDEX Z_2NOTES_Z_3NOTES_INDEX ON Z_2NOTES (Z_3NOTES, Z_2LABELS)"
      ])
  }

  @Test func `gives a relationship that is its own inverse the column REFLEXIVE`() throws {
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: "Person",
        properties: [.relationship("friends", "Person", inverse: "friends", isToMany: true)]))
    let join = try #require(StoreLayout(hierarchy).joinTables.first)
    #expect(join.isReflexive)
    #expect(
      join.sql == "CREATE TABLE Z_1FRIENDS ( Z_1FRIENDS INTEGER, REFLEXIVE INTEGER, "
        + "PRIMARY KEY (Z_1FRIENDS, REFLEXIVE) )")
  }

  @Test func `tells key columns of one entity apart`() throws {
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: "Message",
        properties: [.relationship("users", "User", inverse: "messages", isToMany: true)]),
      EntityDescription(
        name: "Reaction",
        properties: [.relationship("users", "User", inverse: "reactions", isToMany: true)]),
      EntityDescription(
        name: "User",
        properties: [
          .relationship("messages", "Message", inverse: "users", isToMany: true),
          .relationship("reactions", "Reaction", inverse: "users", isToMany: true),
        ]))
    #expect(StoreLayout(hierarchy).joinTables.map(\.secondColumn) == ["Z_3USERS", "Z_3USERS1"])
  }

  @Test func `puts a to-many without inverse into the destination's table`() throws {
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: "Cocktail", properties: [.relationship("spec", "Part", isToMany: true)]),
      EntityDescription(name: "Part"))
    let layout = StoreLayout(hierarchy)
    #expect(layout.ownerColumn(of: "spec", in: "Cocktail") == "Z1SPEC")
    #expect(layout.tables[1].columns.first?.role == .owner("Cocktail", relationship: "spec"))
    #expect(layout.tables[1].indexes.map(\.name) == ["ZPART_Z1SPEC_INDEX"])
  }

  // The second begins with a combining mark, which Swift joins with the letter before it.
  @Test(arguments: ["list", "\u{301}list"])
  func `has a place column for members of an ordered relationship`(list: String) throws {
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: "List",
        properties: [
          .relationship("items", "Item", inverse: list, isToMany: true, isOrdered: true)
        ]),
      EntityDescription(name: "Item", properties: [.relationship(list, "List", inverse: "items")])
    )
    let column = try #require(StoreLayout(hierarchy).orderColumn(of: list, in: "Item"))
    #expect(column.isSameName(as: "Z_FOK_" + list.uppercased()), "\(column)")
  }

  // Framework versions and where uniqueness stands in them.
  @Test(arguments: [
    (version: 754, inTable: true, isLegacy: true),
    (version: 851, inTable: true, isLegacy: false),  // the last with constraints in the table
    (version: 866, inTable: false, isLegacy: false),
    (version: 1447, inTable: false, isLegacy: false),
  ])
  func `keeps uniqueness and old indexes where the framework had them`(
    version: Int, inTable: Bool, isLegacy: Bool
  ) throws {
    var entity = EntityDescription(
      name: "User", properties: [.attribute("name", .string), .attribute("site", .string)],
      uniquenessConstraints: [["name"], ["name", "site"]],
      fetchIndexes: [
        .init(name: "byName", elements: [.init(propertyName: "name", isAscending: false)])
      ],
      compoundIndexes: [["site", "name"]])
    entity.properties = entity.properties.map { property in
      guard case .attribute(var attribute) = property else { return property }
      attribute.traits.isIndexed = attribute.name == "name"
      return .attribute(attribute)
    }
    let layout = StoreLayout(try EntityHierarchy(entity), frameworkVersion: version)
    let table = try #require(layout.tables.first)
    #expect(
      table.sql
        == "CREATE TABLE ZUSER ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
        + (inTable
          ? "ZNAME VARCHAR UNIQUE, ZSITE VARCHAR, CONSTRAINT ZNAME_ZSITE UNIQUE (ZNAME, ZSITE))"
          : "ZNAME VARCHAR, ZSITE VARCHAR )"))
    var expected =
      isLegacy
      ? [
        "CREATE INDEX ZUSER_ZNAME_INDEX ON ZUSER (ZNAME)",
        "CREATE INDEX ZUSER_ZSITE_ZNAME ON ZUSER (ZSITE, ZNAME)",
      ]
      : ["CREATE INDEX Z_User_byName ON ZUSER (ZNAME COLLATE BINARY DESC)"]
    if !inTable {
      expected += [
        "CREATE UNIQUE INDEX Z_User_UNIQUE_name ON ZUSER (ZNAME COLLATE BINARY ASC)",
        "CREATE UNIQUE INDEX Z_User_UNIQUE_name_site ON ZUSER "
          + "(ZNAME COLLATE BINARY ASC, ZSITE COLLATE BINARY ASC)",
      ]
    }
    #expect(table.indexes.map(\.sql) == expected)
  }

  // Names that a model editor refuses and a model file can hold all the same.
  @Test(arguments: [
    "a b", "a\"b", "a'); DROP TABLE Z_METADATA; --", "ü", "a\nb", "[x]", "`x`", "", "1", "ß", "a;b",
    "\u{202e}x",
  ])
  func `gives SQL that means the same whatever a name holds`(name: String) throws {
    let entity = EntityName(name + "E")
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: entity,
        properties: [
          .attribute(name + "A", .string),
          .relationship(name + "R", entity, inverse: name + "S", isToMany: true),
          .relationship(name + "S", entity, inverse: name + "R", isToMany: true),
          .relationship(name + "T", entity),
        ],
        uniquenessConstraints: [[name + "A"]],
        fetchIndexes: [.init(name: name, elements: [.init(propertyName: name + "A")])]))
    let schema = DestinationSchema(StoreLayout(hierarchy))
    let connection = try Connection(path: ":memory:", mode: .create)
    for statement in schema.statements { try connection.execute(statement.sql) }
    let made = try connection.rows(
      "SELECT name FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
    #expect(made.map { $0[0].text } == schema.statements.map(\.name))
    let table = try #require(schema.layout.tables.first)
    let columns = try connection.rows("PRAGMA table_info(\(quoted(table.name)))")
    #expect(
      columns.map { $0[1].text }
        == EntityTable.systemColumns + table.columns.map(\.name))
  }

  @Test func `says what keeps a store from being made`() throws {
    let same = try EntityHierarchy(EntityDescription(name: "Foo"), EntityDescription(name: "FOO"))
    #expect(StoreLayout(same).problems == [.duplicateTable("ZFOO")])
    let control = try EntityHierarchy(EntityDescription(name: "_metadata"))
    #expect(StoreLayout(control).problems == [.duplicateTable("Z_METADATA")])
    let zero = try EntityHierarchy(
      EntityDescription(name: "A", properties: [.attribute("x\0y", .string)]))
    #expect(throws: StoreError.self) { try StoreLayout(zero).requireUsable() }
  }

  @Test func `stays quick for many properties of one name`() throws {
    // Each sub-entity asks for ZX again: 3 000 suffixes, not 3 000 squared.
    var entities = [EntityDescription(name: "Root")]
    for number in 0..<3_000 {
      entities.append(
        EntityDescription(
          name: EntityName("E\(number)"), superentity: "Root",
          properties: [.attribute("x", .string)]))
    }
    let layout = StoreLayout(try EntityHierarchy(ManagedObjectModel(entities: entities)))
    #expect(layout.tables.first?.columns.last?.name == "ZX2999")
  }
}
