@testable import GodwitObjectModel

/// Small models for tests, as `contents` text.
enum Samples {
  static func model(_ body: String) throws -> ManagedObjectModel {
    try ManagedObjectModel(xml: Array(text(body).utf8), path: "contents")
  }

  static func text(_ body: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" \
    userDefinedModelVersionIdentifier="1">\(body)</model>
    """
  }

  /// One of everything that a `contents` file can say.
  static let everything = """
    <entity name="Recipe" representedClassName=".Recipe" isAbstract="YES" elementID="Dish"
        versionHashModifier="2" syncable="YES" somethingNew="1">
      <attribute name="binary" optional="YES" attributeType="Binary"
          allowsExternalBinaryDataStorage="YES" preserveAfterDeletion="YES"/>
      <attribute name="count" optional="YES" attributeType="Integer 64" derived="YES"
          derivationExpression="steps.@count"/>
      <attribute name="created" optional="YES" attributeType="Date"
          defaultDateTimeInterval="-0.5" defaultValueString="2000-12-31" minDateTimeInterval="-1e3"
          maxDateTimeInterval="2000"/>
      <attribute name="isGood" attributeType="Boolean" defaultValueString="YES" indexed="YES"/>
      <attribute name="place" optional="YES" attributeType="Composite" elements="Place"/>
      <attribute name="price" attributeType="Decimal" defaultValueString="1.25" minValueString="0"/>
      <attribute name="rating" attributeType="Integer 16" defaultValueString="NO"
          minValueString="0" maxValueString="5"/>
      <attribute name="secret" optional="YES" attributeType="Transformable"
          valueTransformerName="T" customClassName="NSArray" spotlightIndexingEnabled="YES"/>
      <attribute name="title" attributeType="String" defaultValueString="&lt;&amp;&quot;&#10;ü"
          minValueString="1" maxValueString="80" regularExpressionString="[a-z]+" elementID="name"
          versionHashModifier="x"><userInfo><entry key="k" value="v"/></userInfo></attribute>
      <attribute name="transient" optional="YES" transient="YES"/>
      <attribute name="uuid" optional="YES" attributeType="UUID"
          defaultValueString="00112233-4455-6677-8899-AABBCCDDEEFF"/>
      <attribute name="weight" optional="YES" attributeType="Float" defaultValueString="0.1"/>
      <relationship name="steps" optional="YES" toMany="YES" minCount="1" maxCount="9"
          deletionRule="Cascade" ordered="YES" destinationEntity="Step" inverseName="recipe"
          inverseEntity="Step"/>
      <fetchedProperty name="fetched" optional="YES"><fetchRequest
          name="fetchedPropertyFetchRequest" entity="Step" predicateString="name == $FETCH_SOURCE.title"/>
      </fetchedProperty>
      <fetchIndex name="byTitle"><fetchIndexElement property="title" type="Binary" order="ascending"/>
      </fetchIndex>
      <fetchIndex name="mixed"><fetchIndexElement property="title" type="Binary" order="descending"/>
        <fetchIndexElement property="rating" type="RTree" order="ascending"/></fetchIndex>
      <compoundIndexes><compoundIndex><index value="title"/><index value="rating"/></compoundIndex>
      </compoundIndexes>
      <uniquenessConstraints><uniquenessConstraint><constraint value="title"/>
        <constraint value="rating"/></uniquenessConstraint></uniquenessConstraints>
      <userInfo><entry key="a" value="b"/></userInfo>
    </entity>
    <entity name="Soup" parentEntity="Recipe"/>
    <entity name="Step"><attribute name="name" optional="YES" attributeType="String"/>
      <relationship name="recipe" maxCount="1" deletionRule="Deny" destinationEntity="Recipe"
          inverseName="steps" inverseEntity="Recipe"/></entity>
    <fetchRequest name="good" entity="Recipe" predicateString="(rating &gt; 3) AND (isGood == 1)"
        fetchLimit="10"/>
    <configuration name="Cloud"><memberEntity name="Step"/><memberEntity name="Recipe"/></configuration>
    <composite name="Place"><attribute name="street" optional="YES" attributeType="String"/>
      <attribute name="point" optional="YES" attributeType="Composite" elements="Point"/></composite>
    <composite name="Point"><attribute name="x" attributeType="Double" defaultValueString="0"/></composite>
    <elements><element name="Recipe" positionX="0"/></elements><novelty/>
    """
}
