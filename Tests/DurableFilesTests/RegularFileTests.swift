import Foundation
import Glibc
import GodwitDurableFiles
import SystemPackage
import Testing

@Suite struct `A regular file` {
  /// What else may lie where a file is expected.
  enum Trap: String, CaseIterable {
    case fifo, socket, device, folder, link, linkToFifo, linkedFolder

    /// Puts it into a folder.
    func place(in folder: FilePath) throws -> FilePath {
      let path = folder.appending("trap")
      let other = folder.appending("other")
      switch self {
      case .fifo: #expect(mkfifo(path.string, 0o600) == 0)
      case .socket: try bindSocket(path)
      case .device: return "/dev/zero"
      case .folder: try DurableFile.makeFolder(path)
      case .link:
        try DurableFile.write([1], to: other)
        #expect(symlink(other.string, path.string) == 0)
      case .linkToFifo:
        #expect(mkfifo(other.string, 0o600) == 0)
        #expect(symlink(other.string, path.string) == 0)
      case .linkedFolder:
        try DurableFile.makeFolder(other)
        try DurableFile.write([1], to: other.appending("file"))
        #expect(symlink(other.string, path.string) == 0)
        return path.appending("file")
      }
      return path
    }

    private func bindSocket(_ path: FilePath) throws {
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.string.utf8) }
      let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(socket) }
      let bound = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
      #expect(bound == 0)
    }
  }

  // Each of them would wait for ever, or lead elsewhere, if it were opened as open(2) does.
  @Test(arguments: Trap.allCases)
  func `is told from everything else, and nothing waits`(trap: Trap) throws {
    let folder = try TemporaryFolder()
    let path = try trap.place(in: folder.path)
    for access in [FileDescriptor.AccessMode.readOnly, .writeOnly, .readWrite] {
      let error = #expect(throws: DurabilityError.self) { try RegularFile.open(path, access) }
      switch trap {
      case .link, .linkToFifo, .linkedFolder:
        #expect(error == .symbolicLink(trap == .linkedFolder ? path.removingLastComponent() : path))
      case .folder: #expect(error == .notRegular(path, .folder))
      case .fifo, .socket, .device: #expect(error == .notRegular(path, .special))
      }
    }
    #expect(throws: DurabilityError.self) { try RegularFile.bytes(of: path, limit: 10) }
    #expect(throws: DurabilityError.self) {
      try DurableFile.copy(path, to: folder.path.appending("copy"))
    }
  }

  @Test func `is read through links where a person names it`() throws {
    let folder = try TemporaryFolder()
    let link = try Trap.link.place(in: folder.path)
    #expect(try RegularFile.bytes(of: link, limit: 1, links: .followed) == [1])
    #expect(throws: DurabilityError.notRegular("/dev/zero", .special)) {
      try RegularFile.bytes(of: "/dev/zero", limit: 10, links: .followed)
    }
  }

  // The limit itself is allowed.
  @Test(arguments: [0, 9, 10, 11])
  func `is read up to a limit`(size: Int) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("a")
    try DurableFile.write([UInt8](repeating: 5, count: size), to: path)
    if size <= 10 {
      #expect(try RegularFile.bytes(of: path, limit: 10).count == size)
    } else {
      #expect(throws: DurabilityError.tooLarge(path, limitBytes: 10)) {
        try RegularFile.bytes(of: path, limit: 10)
      }
    }
    #expect(try RegularFile.bytesIfPresent(of: folder.file("none"), limit: 10) == nil)
  }

  @Test(arguments: [0o600: true, 0o644: true, 0o620: false, 0o602: false])
  func `is trusted when nobody else may write to it`(mode: mode_t, isPrivate: Bool) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("a")
    try DurableFile.write([1], to: path)
    #expect(chmod(path.string, mode) == 0)
    if isPrivate {
      #expect(try RegularFile.bytes(of: path, limit: 1, isPrivate: true) == [1])
    } else {
      #expect(throws: DurabilityError.self) {
        try RegularFile.bytes(of: path, limit: 1, isPrivate: true)
      }
    }
  }

  @Test func `is found again when the folders on its way were links`() throws {
    let folder = try TemporaryFolder()
    let path = try Trap.linkedFolder.place(in: folder.path)
    let resolved = path.resolvingFolders
    #expect(resolved == folder.path.appending("other").appending("file"))
    #expect(try RegularFile.bytes(of: resolved, limit: 1) == [1])
    #expect(path.isSamePlace(as: resolved))
    #expect(!path.isSamePlace(as: folder.path.appending("file")))
  }

  @Test func `keeps its name where a link in its folder's place would take it`() throws {
    let folder = try TemporaryFolder()
    let path = try Trap.linkedFolder.place(in: folder.path)
    let file = folder.file("new")
    try DurableFile.write([2], to: file)
    #expect(throws: DurabilityError.self) { try DurableFile.rename(file, to: path) }
    #expect(throws: DurabilityError.self) { try DurableFile.remove(path) }
    #expect(throws: DurabilityError.self) { try DurableFile.link(file, to: path) }
    #expect(throws: DurabilityError.self) { try DurableFile.write([3], to: path) }
    #expect(contents(of: folder.path.appending("other").appending("file")) == [1])
  }
}
