import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// Ordered relationships that several of the source come together in.
@Suite struct `Lists that come together` {
  private static let toys = "INSERT INTO ZTOY (Z_PK, Z_ENT, Z_OPT) VALUES (1, 4, 1), (2, 4, 1);"

  private static func animals(_ toys: PropertyDescription...) -> [EntityDescription] {
    [
      EntityDescription(name: "Animal", properties: toys), entity("Cat", parent: "Animal"),
      entity("Dog", parent: "Animal"),
    ]
  }

  // Places go against the order of the keys. The last question is about all that the destination has.
  static let forms:
    [(
      name: String, old: [EntityDescription], new: [EntityDescription], rows: String,
      question: String, places: [String]
    )] = [
      (
        // Each animal has one of the two relationships. The animals of a toy are those of both, one after the other.
        "many-to-many",
        [
          entity("Animal"),
          entity("Cat", toMany("toys", "Toy", inverse: "cats", ordered: true), parent: "Animal"),
          entity("Dog", toMany("toys", "Toy", inverse: "dogs", ordered: true), parent: "Animal"),
          entity(
            "Toy", toMany("cats", "Cat", inverse: "toys", ordered: true),
            toMany("dogs", "Dog", inverse: "toys", ordered: true)),
        ],
        animals(toMany("toys", "Toy", inverse: "animals", ordered: true)) + [
          entity("Toy", toMany("animals", "Animal", inverse: "toys", ordered: true))
        ],
        toys + """
          INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 3, 1), (3, 2, 1);
          INSERT INTO Z_2TOYS (Z_2CATS, Z_4TOYS, Z_FOK_2CATS, Z_FOK_4TOYS)
          VALUES (1, 1, 5000, 900), (1, 2, 100, 300), (3, 1, 4000, 100);
          INSERT INTO Z_3TOYS (Z_3DOGS, Z_4TOYS1, Z_FOK_3DOGS, Z_FOK_4TOYS1)
          VALUES (2, 1, 50, 800), (2, 2, 70, 700)
          """,
        "SELECT Z_1ANIMALS, Z_4TOYS, Z_FOK_1ANIMALS, Z_FOK_4TOYS FROM Z_1TOYS ORDER BY 1, 2",
        ["1 1 3072 900", "1 2 2048 300", "2 1 4096 800", "2 2 3072 700", "3 1 2048 100"]
      ),
      (
        // Only the cats' toys were ordered: those of a dog follow by their keys.
        "many-to-many, one ordered",
        [
          entity("Animal"),
          entity("Cat", toMany("toys", "Toy", inverse: "cats", ordered: true), parent: "Animal"),
          entity("Dog", toMany("toys", "Toy", inverse: "dogs"), parent: "Animal"),
          entity(
            "Toy", toMany("cats", "Cat", inverse: "toys"), toMany("dogs", "Dog", inverse: "toys")),
        ],
        animals(toMany("toys", "Toy", inverse: "animals", ordered: true)) + [
          entity("Toy", toMany("animals", "Animal", inverse: "toys"))
        ],
        toys + """
          INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 3, 1);
          INSERT INTO Z_2TOYS (Z_2CATS, Z_4TOYS, Z_FOK_4TOYS) VALUES (1, 1, 900), (1, 2, 300);
          INSERT INTO Z_3TOYS (Z_3DOGS, Z_4TOYS1) VALUES (2, 1), (2, 2)
          """,
        "SELECT Z_1ANIMALS, Z_4TOYS, Z_FOK_4TOYS FROM Z_1TOYS ORDER BY 1, 2",
        ["1 1 3072", "1 2 2048", "2 1 2048", "2 2 3072"]
      ),
      (
        "one-to-many",
        [
          entity("Animal"),
          entity("Cat", toMany("toys", "Toy", inverse: "cat", ordered: true), parent: "Animal"),
          entity("Dog", toMany("toys", "Toy", inverse: "dog", ordered: true), parent: "Animal"),
          entity("Toy", toOne("cat", "Cat", inverse: "toys"), toOne("dog", "Dog", inverse: "toys")),
        ],
        animals(toMany("toys", "Toy", inverse: "animal", ordered: true)) + [
          entity("Toy", toOne("animal", "Animal", inverse: "toys"))
        ],
        """
        INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 3, 1);
        INSERT INTO ZTOY (Z_PK, Z_ENT, Z_OPT, ZCAT, Z_FOK_CAT) VALUES (1, 4, 1, 1, 900), (2, 4, 1, 1, 300);
        INSERT INTO ZTOY (Z_PK, Z_ENT, Z_OPT, ZDOG, Z_FOK_DOG) VALUES (3, 4, 1, 2, 800), (4, 4, 1, 2, 700);
        INSERT INTO ZTOY (Z_PK, Z_ENT, Z_OPT) VALUES (5, 4, 1)
        """,
        "SELECT Z_PK, ZANIMAL, Z_FOK_ANIMAL FROM ZTOY ORDER BY 1",
        ["1 1 900", "2 1 300", "3 2 800", "4 2 700", "5 - -"]
      ),
      (
        // A toy's list holds dogs, too, now. A reference to nothing stays as it is.
        "one-to-many, whose members get a new sub-entity",
        [
          entity("Animal"), entity("Cat", toOne("toy", "Toy", inverse: "cats"), parent: "Animal"),
          entity("Dog", toOne("toy", "Toy", inverse: "dogs"), parent: "Animal"),
          entity(
            "Toy", toMany("cats", "Cat", inverse: "toy", ordered: true),
            toMany("dogs", "Dog", inverse: "toy", ordered: true)),
        ],
        [
          entity("Animal"), entity("Cat", toOne("toy", "Toy", inverse: "cats"), parent: "Animal"),
          entity("Dog", parent: "Cat"),
          entity("Toy", toMany("cats", "Cat", inverse: "toy", ordered: true)),
        ],
        toys + """
          INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT, ZTOY, Z_FOK_TOY)
          VALUES (1, 2, 1, 1, 900), (2, 2, 1, 1, 300), (3, 2, 1, 2, 500), (6, 2, 1, 9, 40);
          INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT, ZTOY1, Z_FOK_TOY1) VALUES (4, 3, 1, 1, 800), (5, 3, 1, 1, 100)
          """,
        "SELECT Z_PK, ZTOY, Z_FOK_TOY FROM ZANIMAL ORDER BY 1",
        ["1 1 3072", "2 1 2048", "3 2 2048", "4 1 5120", "5 1 4096", "6 9 2048"]
      ),
    ]

  @Test(arguments: forms.indices, [1 << 24, 1] as [Int64])
  func `keep the order of each, with one shard and with a shard for every row`(
    form: Int, shardBytes: Int64
  ) throws {
    let form = Self.forms[form]
    let fixture = try MigrationFixture(from: form.old, to: form.new, rows: form.rows)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(try store.table(form.question) == form.places, "\(form.name)")
  }
}
