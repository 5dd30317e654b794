/// What is lost, in words.
package enum LossWords {
  /// After a number: `value`, `values`.
  ///
  /// - Parameter kind: ``RunReport/Loss/kind``.
  package static func what(_ kind: String, count: Int64) -> String {
    let (one, many) = words[kind] ?? ("value", "values")
    return count == 1 ? one : many
  }

  /// Of a loss of several stores, or of several losses of one store.
  static func message(of loss: RunReport.Loss) -> String {
    let place = [loss.entity, loss.property].compactMap(\.self).joined(separator: ".")
    return (place.isEmpty ? "" : "\(place): ")
      + "\(loss.count) \(what(loss.kind, count: loss.count)) "
      + "in \(loss.stores) \(loss.stores == 1 ? "store" : "stores")."
  }

  private static let words = [
    "entity": ("object", "objects"),
    "attribute": ("value", "values"),
    "column": ("value", "values"),
    "relationship": ("reference", "references"),
    "reference": ("reference", "references"),
    "shared-target": ("reference", "references"),
    "left-out": (
      "object that no entity mapping selects", "objects that no entity mapping selects"
    ),
    "order": ("place in a list", "places in a list"),
    "narrowing": (
      "value that a narrower type changes", "values that a narrower type changes"
    ),
    "table": ("row", "rows"),
    "set-aside": ("object set aside", "objects set aside"),
    "defaulted": ("value replaced by the default", "values replaced by the default"),
    "history": ("transaction of the history", "transactions of the history"),
  ]
}
