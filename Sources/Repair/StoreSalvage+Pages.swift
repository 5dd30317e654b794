import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Whose a page is.
///
/// What `sqlite_master` names, and what sound pages below lead to, is that table's. Only of other pages what their
/// rows look like says more: an application's table may have rows like the model's, such as a copy of one of its
/// tables.
extension StoreSalvage {
  /// Whether the rows below a root page look like the table's, or are too few to tell.
  func isLikely(_ root: UInt32, _ shape: TableShape?) -> Bool {
    guard let shape, root > 0 else { return true }
    let (fitting, rows) = shape.share(below: root, file, values)
    return rows < 4 || fitting * 4 >= rows
  }

  /// Whether rows that do not look like the table's are its own all the same, with values that should
  /// not be there: the page is a root, and no other table misses such rows.
  func isOwn(
    _ root: UInt32, of name: NameKey, _ doubted: [NameKey], _ shapes: [NameKey: TableShape]
  ) -> Bool {
    if let entry = file.entry(of: root), entry.role != .root { return false }
    return !shapes.contains { other, shape in
      guard other != name, doubted.contains(other) || (schema.table(other.name)?.root ?? 0) == 0
      else {
        return false
      }
      let (fitting, rows) = shape.share(below: root, file, values)
      return fitting * 10 >= rows * 9
    }
  }

  /// Whether a table of the application's and one of the model's have each other's root page: each has such rows as
  /// the other one, and not its own.
  ///
  /// - Parameter numbered: The application's, without the numbers of the model's entities.
  func isExchanged(
    _ name: NameKey, _ numbered: TableShape, _ models: [NameKey: TableShape]
  ) -> Bool {
    guard let root = schema.table(name.name)?.root, root > 0, !isLikely(root, numbered) else {
      return false
    }
    return models.contains { model, shape in
      guard shape.entityNumbers != nil, let other = schema.table(model.name)?.root, other > 0,
        !isLikely(other, shape)
      else { return false }
      return isOwn(root, shape) && isOwn(other, numbered)
    }
  }

  /// Whether a leaf to which a table's root leads is its own. What is another table's as well, and what is not
  /// its own, is noted.
  func isOwnLeaf(
    _ leaf: UInt32, of name: NameKey, _ shapes: [NameKey: TableShape], isInPlace: () -> Bool
  ) -> Bool {
    let isForeign = isForeign(leaf, to: name, shapes, isInPlace: isInPlace)
    guard let numbered = numberedShapes[name] else { return !isForeign }
    if isForeign {
      refusedLeaves[leaf] = name
    } else if numbered.ownership(of: leaf, file, values) != .own, file.isCopied(leaf) {
      copiedTables.insert(name)
    }
    return !isForeign
  }

  /// Whether none of a leaf's rows can be the table's.
  ///
  /// - Parameter isInPlace: Whether `sqlite_master` and sound pages, or a pointer map, say that the leaf is the
  ///   table's.
  func isForeign(
    _ leaf: UInt32, to name: NameKey, _ shapes: [NameKey: TableShape], isInPlace: () -> Bool
  ) -> Bool {
    guard let shape = shapes[name] else { return false }
    let ownership = shape.ownership(of: leaf, file, values)
    if ownership == .foreign { return true }
    let numbered = numberedShapes[name]
    let isOdd =
      ownership == .odd || numbered.map { $0.ownership(of: leaf, file, values) != .own } ?? false
    guard isOdd, !shape.isOthers || !isInPlace() else { return false }
    // Rows of another entity have values for its columns, too.
    return shapes.contains { other, shape in
      guard other != name, shape.entityNumbers != nil else { return false }
      let (fitting, rows) = shape.share(below: leaf, file, values)
      guard rows > 0, fitting == rows else { return false }
      return numbered == nil || isMissed(leaf, other, shape) || file.isCopied(leaf)
    }
  }

  /// Whether a table has lost such rows as those of a leaf, or is not read yet.
  func isMissed(_ leaf: UInt32, _ name: NameKey, _ shape: TableShape) -> Bool {
    guard let gaps = tables[name]?.gaps else { return true }
    return isOwn(leaf, shape) { key in gaps.contains { $0.contains(key) } }
  }

  /// Whether rows that are found for a table may be those of an application's table that has rows like it, and has
  /// lost some.
  private func isContested(
    _ leaf: UInt32, _ name: NameKey, _ shapes: [NameKey: TableShape]
  ) -> Bool {
    shapes.contains { other, shape in
      other != name && numberedShapes[other] != nil && tables[other] != nil
        && isMissed(leaf, other, shape)
    }
  }

  func isOwn(
    _ leaf: UInt32, _ shape: TableShape, keyed: (Int64) -> Bool = { _ in true }
  ) -> Bool {
    let (fitting, rows) = shape.share(below: leaf, file, values, keyed: keyed)
    return rows > 0 && fitting * 10 >= rows * 9
  }

  /// Gives leaves that no page leads to any more to the tables whose they are: by the pointer maps,
  /// or by what they look like, where only one of the tables without a root has such rows, or lost
  /// rows of such keys.
  func adoptOrphans(_ shapes: [NameKey: TableShape], _ homeless: Set<NameKey>) throws {
    let reader = DamagedTreeReader(file, .table, tree: 0)
    let groups = file.orphanGroups(of: reader)
    strayPages = (1...file.pageCount).filter { file.isFreeByMapAlone($0) && reader.isLeaf($0) }
    guard !groups.isEmpty else { return }
    let owners = Dictionary(
      tables.map { ($0.value.tree, $0.key) }, uniquingKeysWith: { first, _ in first })
    let roots = Dictionary(
      schema.tables.map { ($0.root, NameKey($0.name)) }, uniquingKeysWith: { first, _ in first })
    var left: [UInt32] = []
    for group in groups {
      if group.owner != DamagedFile.unclaimed {
        guard let name = owners[group.owner], let table = tables[name] else { continue }
        let own = group.leaves.filter { leaf in
          // Where no page of the table is damaged, both lists of free pages have to agree.
          !(table.gaps.isEmpty && file.isListedFree(leaf))
            && !isForeign(leaf, to: name, shapes) { true }
        }
        try adopt(own, name)
        left += group.leaves.filter { !own.contains($0) }
        continue
      }
      var leaves = group.leaves
      if let name = roots[group.top], let shape = shapes[name], !shape.isPairs {
        let own = leaves.filter { refusedLeaves[$0] != name && isOwn($0, shape) }
        try adopt(own, name)
        leaves.removeAll { own.contains($0) }
        if leaves.isEmpty { continue }
      }
      let fitting = homeless.filter { name in
        guard let shape = shapes[name], !leaves.contains(where: { refusedLeaves[$0] == name })
        else { return false }
        var (fitting, rows) = (0, 0)
        for leaf in leaves.prefix(8) {
          let share = shape.share(below: leaf, file, values)
          (fitting, rows) = (fitting + share.fitting, rows + share.rows)
        }
        return rows > 0 && fitting * 10 >= rows * 9
      }
      guard fitting.count == 1, let name = fitting.first else {
        left += leaves
        continue
      }
      for leaf in leaves { try adopt([leaf], name, isContested: isContested(leaf, name, shapes)) }
      found(name)
    }
    let lone = left.isEmpty ? [] : Set(shapes.keys.filter(hasLoneLeaf))
    for leaf in left {
      // By the numbers of its entities, and keys all of which the table misses.
      var fitting = shapes.filter { name, shape in
        guard !shape.isPairs, refusedLeaves[leaf] != name, let table = tables[name] else {
          return false
        }
        if table.gaps.isEmpty {
          // A leaf in the place of a root that led to others says nothing of them.
          guard !shape.isOthers, !file.isListedFree(leaf), lone.contains(name) else { return false }
          let isThere = table.presence()
          return isOwn(leaf, shape) { key in !isThere(key) }
        }
        return isOwn(leaf, shape) { key in table.gaps.contains { $0.contains(key) } }
      }
      // The model's say more of their rows than others.
      let models = fitting.filter { !$0.value.isOthers }
      if !models.isEmpty { fitting = models }
      if fitting.count == 1, let name = fitting.first?.key {
        try adopt([leaf], name, isContested: isContested(leaf, name, shapes))
        found(name)
      } else if !file.isListedFree(leaf) {
        strayPages.append(leaf)
      }
    }
  }

  /// Whether all that is known of a table is one page.
  private func hasLoneLeaf(_ name: NameKey) -> Bool {
    guard let root = schema.table(name.name)?.root, root > 0 else { return false }
    return DamagedTreeReader(file, .table, tree: 0).children(of: root) == nil
  }

  private func adopt(
    _ leaves: [UInt32], _ name: NameKey, isContested: Bool = false
  ) throws {
    guard !leaves.isEmpty, var table = tables[name] else { return }
    try table.fill(root: nil, orphans: leaves, of: file, isContested: isContested)
    tables[name] = table
  }
}
