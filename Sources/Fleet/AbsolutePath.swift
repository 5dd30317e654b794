import GodwitDurableFiles
import SystemPackage

extension FilePath {
  /// From the root on, for processes that stand elsewhere: without links as far as it is there yet.
  package var absolute: FilePath {
    if let resolved { return resolved }
    guard let name = lastComponent, folder != self else { return self }
    return folder.absolute.appending(name)
  }

  /// The same place from the root on, with no link among its folders. The last component stays as it is, link or
  /// not. `-` stays, too: it is the name of no file, see `NewFilePlace`.
  var whole: FilePath {
    guard isRelative, string != "-", let name = lastComponent else { return resolvingFolders }
    return folder.absolute.appending(name)
  }

  /// The lowest of the folders above it that is there, in which the others are made; itself if it is.
  package var nearest: FilePath {
    var place = absolute
    while (try? FileKind(following: place)) == FileKind.none, place.folder != place {
      place = place.folder
    }
    return place
  }
}
