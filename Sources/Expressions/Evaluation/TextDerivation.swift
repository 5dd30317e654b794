/// The functions of derivations over texts: `canonical:(name)`, `uppercase:(name)`, `lowercase:(name)`.
///
/// They give what a mapping model's functions of these names give.
package struct TextDerivation: Sendable, CaseIterable {
  /// As a derivation spells it.
  package let name: String
  /// What an SQL function is called that computes it.
  package let sqlName: String

  package static let allCases = [
    TextDerivation(name: "canonical:", sqlName: "godwit_canonical"),
    TextDerivation(name: "uppercase:", sqlName: "godwit_uppercase"),
    TextDerivation(name: "lowercase:", sqlName: "godwit_lowercase"),
  ]

  /// Nil for a function that is none of these.
  package static func named(_ name: String) -> TextDerivation? {
    allCases.first { $0.name == name }
  }

  package func apply(_ text: String) -> String {
    switch name {
    case "uppercase:": text.uppercased()
    case "lowercase:": text.lowercased()
    default: TextMatching().folded(text, [.caseInsensitive, .diacriticInsensitive])
    }
  }
}
