import GodwitDurableFiles

/// Why a managed object model cannot be read or used.
package enum ModelError: Error, Sendable, Equatable {
  /// Two entities have the same name.
  case duplicateEntity(EntityName)
  /// An entity inherits from one that the model does not have.
  case unknownSuperentity(entity: EntityName, superentity: EntityName)
  /// These entities inherit from themselves, directly or not, or from one that does.
  case circularInheritance([EntityName])
  /// A model of Xcode 3: `elements` and `layout` instead of `contents`.
  case oldBinaryModel(path: String)
  /// The path does not exist, or what is there is not a model file that can be read.
  case unreadable(path: String, reason: String)
  /// The file can be read, and what it says is not a model that Core Data opens.
  case invalid(path: String, problems: [ModelProblem])
  /// No version of the given name in a bundle of versions.
  case noSuchVersion(path: String, version: String, known: [String])
  /// A bundle of several versions that does not say which one is current, or names one that it does not have.
  case noCurrentVersion(path: String, named: String? = nil, known: [String])
  /// Not an `.xcdatamodeld` folder, where versions could be added or chosen.
  case notABundle(path: String)
  /// An `.xcdatamodel` folder that is a version of a bundle already.
  case versionOfABundle(path: String, bundle: String)
  /// A plain model would become a bundle, and there is one of that name.
  case bundleExists(path: String)
  /// A symbolic link where something would be written or moved: what it leads to would stay as it is.
  case symbolicLink(path: String)
  /// A plain `.xcdatamodel` that holds something else than files.
  case moreThanFiles(path: String, name: String)
  /// A name that no version can have.
  case badVersionName(String, reason: String)
  /// A version of that name is there already.
  case versionExists(path: String, version: String)
  /// The content of a store's `Z_MODELCACHE`.
  case modelCache(reason: String)
  /// Bounds that stop hostile models; real ones stay far below.
  case tooLarge(what: String, limit: Int)
}

extension ModelError: CustomStringConvertible {
  /// What is wrong with the model, where, and what to do next.
  package var description: String {
    switch self {
    case .duplicateEntity(let name):
      "The model has two entities named \(name). Rename one of them."
    case .unknownSuperentity(let entity, let superentity):
      "Entity \(entity) names the superentity \(superentity), which is not in the model."
    case .circularInheritance(let names):
      "The inheritance of \(names.map(\.rawValue).joined(separator: ", ")) goes in a circle. "
        + "Give one of them another superentity."
    case .oldBinaryModel(let path):
      "\(path) is a binary model of Xcode 3 (elements, layout). "
        + "Save it again with Xcode 4 or later, or give a store or a .mom of this version."
    case .unreadable(let path, let reason):
      "\(path) cannot be read as a managed object model: \(reason)."
    case .invalid(let path, let problems):
      "\(path) is not a valid model. "
        + problems.prefix(ModelRules.mostProblems).map(\.message).joined(separator: " ")
        + (problems.count > ModelRules.mostProblems
          ? " And \(problems.count - ModelRules.mostProblems) more." : "")
    case .noSuchVersion(let path, let version, let known):
      "\(path) has no version \(version). It has: \(known.joined(separator: ", "))."
        + known.noteOfLookalike(of: version)
    case .noCurrentVersion(let path, let named, let known):
      "\(path) "
        + (named.map { "names \($0) as its current version and does not have it. " }
          ?? "has several versions and names none of them as the current one. ")
        + "Name one as PATH:VERSION"
        + (path.ends(with: ".momd") ? "" : ", or make one current with `godwit model set-current`")
        + ": \(known.joined(separator: ", "))."
    case .notABundle(let path):
      "\(path) is not an .xcdatamodeld folder. Give the folder that holds the versions."
    case .versionOfABundle(let path, let bundle):
      "\(path) is a version of \(bundle). Give that folder."
    case .bundleExists(let path):
      "\(path) exists already, so the plain model beside it does not become a bundle. Add the version "
        + "to the bundle, or remove one of the two."
    case .symbolicLink(let path):
      "\(path) is a symbolic link, and is not changed. Give the path that it leads to, or put the file or "
        + "folder itself there."
    case .moreThanFiles(let path, let name):
      "\(path) holds \(name), which is a folder, a link or no file, and does not become a bundle with it. "
        + "Move it elsewhere, or put a file in its place."
    case .badVersionName(let name, let reason):
      "\"\(name)\" cannot be the name of a version: \(reason). Choose another, such as \"Shop 2\"."
    case .versionExists(let path, let version):
      "\(path) has a \(version) already, which is not overwritten. Choose another name."
    case .modelCache(let reason):
      "The model in the store's Z_MODELCACHE cannot be used: \(reason). "
        + "Give the model as a file; the store itself may be sound."
    case .tooLarge(let what, let limit):
      "The model has more than \(limit) \(what), so it is refused. Check where it is from."
    }
  }
}

extension ModelError {
  /// What is wrong with which entity and property, the first ten; empty for every other error.
  package var problems: [ModelProblem] {
    if case .invalid(_, let problems) = self {
      Array(problems.prefix(ModelRules.mostProblems))
    } else {
      []
    }
  }
}
