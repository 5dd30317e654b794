import GodwitObjectModel

/// Elements of a composite attribute on their way into a dictionary.
package struct CompositeElements {
  private var values: [String: ExpressionValue] = [:]
  private var inner: [String: CompositeElements] = [:]

  /// Makes one without elements.
  package init() {}

  /// Sets an element.
  ///
  /// - Parameter path: Names of elements, from the composite's own elements down.
  package mutating func set(_ path: ArraySlice<String>, to value: ExpressionValue) {
    guard let name = path.first else { return }
    if path.count == 1 {
      values[name] = value
    } else {
      inner[name, default: CompositeElements()].set(path.dropFirst(), to: value)
    }
  }

  /// All elements, those without a value as nil.
  package var dictionary: ExpressionValue {
    .dictionary(values.merging(inner.mapValues(\.dictionary)) { value, _ in value })
  }

  /// The elements that have a value; nil where none has.
  package var valueOrNull: ExpressionValue {
    var pairs = inner.mapValues(\.valueOrNull)
    pairs.merge(values) { _, value in value }
    pairs = pairs.filter { !$0.value.isNull }
    return pairs.isEmpty ? .null : .dictionary(pairs)
  }
}

/// The composite attributes of an entity whose attributes are listed by name, their elements by key path:
/// `place.street`, `place.point.x`.
package struct CompositeIndex {
  /// By the key path of the composite: for each of its elements the path below it, and its number in the
  /// list.
  private var elements: [String: [(path: [String], number: Int)]] = [:]

  /// - Parameter names: Of all attributes; those without a dot are no elements.
  package init(_ names: [String]) {
    for (number, name) in names.enumerated() where name.utf8.contains(UInt8(ascii: ".")) {
      let path = name.keyPathParts
      for length in 1..<max(path.count, 1) {
        elements[path[..<length].joined(separator: "."), default: []]
          .append((Array(path[length...]), number))
      }
    }
  }

  /// True for the key path of a composite, which may be an element of another.
  package func contains(_ key: String) -> Bool { elements[key] != nil }

  /// The composite's elements that have a value as a dictionary, nil where none has: a store holds
  /// nothing else of it.
  ///
  /// - Parameter element: Reads the attribute of a number.
  /// - Returns: Swift's nil where there is no such composite.
  package func value(
    of key: String, element: (Int) throws -> ExpressionValue
  ) rethrows -> ExpressionValue? {
    guard let found = elements[key] else { return nil }
    var tree = CompositeElements()
    for (path, number) in found { tree.set(path[...], to: try element(number)) }
    return tree.valueOrNull
  }

  /// The elements of a composite, and what each is in a dictionary: null where that does not name it.
  ///
  /// - Returns: Nil where there is no such composite.
  /// - Throws: For a value that is no dictionary, or names what is no element, at any depth.
  package func elements(
    of key: String, in value: ExpressionValue
  ) throws(EvaluationProblem) -> [(number: Int, value: ExpressionValue)]? {
    guard let found = elements[key] else { return nil }
    try check(value, key, found.map(\.path))
    return found.map { path, number in (number, value.element(at: path)) }
  }

  private func check(
    _ value: ExpressionValue, _ key: String, _ paths: [[String]]
  ) throws(EvaluationProblem) {
    if value.isNull { return }
    guard case .dictionary(let pairs) = value else {
      throw .wrongKind(
        found: value.kind, needed: "a dictionary of the elements of \(key)")
    }
    for (name, value) in pairs.sorted(by: { $0.key.precedesInBytes($1.key) }) {
      let below = paths.filter { $0.first == name }.map { Array($0.dropFirst()) }
      guard !below.isEmpty else {
        throw .unknownKey(owner: "the composite attribute \(key)", key: name)
      }
      if !below.contains([]) { try check(value, key + "." + name, below) }
    }
  }
}

extension ExpressionValue {
  /// What lies at a path below a composite attribute's value; null where there is nothing.
  package func element(at path: [String]) -> ExpressionValue {
    var value = self
    for name in path {
      guard case .dictionary(let pairs) = value else { return .null }
      value = pairs[name] ?? .null
    }
    return value
  }
}
