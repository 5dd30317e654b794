import GodwitDurableFiles

extension LostRights {
  /// What somebody has to know of a store that took the place of another, or was written beside it.
  ///
  /// - Parameter source: What had the rights, at the beginning of a sentence.
  package func notes(of store: String, source: String = "The source") -> [String] {
    var notes: [String] = []
    if let owner {
      notes.append(
        "\(source) belongs to user \(owner), and this user cannot give files away. \(store) belongs to "
          + "this user now: user \(owner) has no more rights to it than its group, or everybody. Set the "
          + "owner (chown). To keep it, run as that user or as root.")
    }
    if let group {
      notes.append(
        "\(source) belongs to group \(group), of which this user is not a member. \(store) belongs to "
          + "another group, which has no more rights to it than everybody. Set the group (chgrp) and its "
          + "rights. To keep them, run as a member of the group or as root.")
    }
    if let attributes {
      let isOne = attributes.count == 1
      notes.append(
        "\(source) has the extended \(isOne ? "attribute" : "attributes") "
          + "\(attributes.joined(separator: ", ")), which this user or volume cannot set. \(store) is without "
          + "\(isOne ? "it" : "them"). Set \(isOne ? "it" : "them") (setfattr, setfacl, setcap), or run as root."
      )
    }
    return notes
  }
}
