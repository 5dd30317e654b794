import ArgumentParser
import Foundation
import GodwitDurableFiles
import GodwitFleet
import GodwitPersistentStore
import GodwitReport
import Logging
import Synchronization
import SystemPackage

/// Where log lines go, and their form.
enum LogForm: String, CaseIterable, Sendable, ExpressibleByArgument {
  /// `time=… level=info message="…" store=/srv/x`: https://brandur.org/logfmt
  case logfmt
  /// One JSON object a line.
  case json
}

/// Log lines in a file, or in systemd's journal. A line that cannot be written is dropped, and the first
/// such failure is kept: a log never ends a run.
final class LogSink: Sendable {
  /// What is given for a path where systemd's journal is meant.
  static let journal = "journal"

  private enum Place {
    case file(FileDescriptor)
    case journal(FileDescriptor)
  }

  private let place: Place
  private let form: LogForm
  private let firstFailure = Mutex<String?>(nil)

  /// Why a line is lost; nil where none is.
  var failure: String? { firstFailure.withLock { $0 } }

  /// - Parameter path: Of a file, which is appended to, or made for its owner and group to read; or
  ///   `journal`.
  /// - Throws: `DurabilityError` for what is no regular file or cannot be opened; `CommandError`
  ///   where there is no journal.
  init(path: String, form: LogForm) throws {
    self.form = form
    if path == Self.journal {
      place = .journal(try Self.openJournal())
    } else {
      try NewFilePlace(FilePath(path)).check()
      do {
        try Self.checkLog(FilePath(path))
      } catch let error as DurabilityError {
        throw CommandError(.cannotCreateOutput, "output", "\(error)")
      }
      place = .file(
        try RegularFile.open(
          FilePath(path), .writeOnly, options: [.create, .append],
          permissions: [.ownerReadWrite, .groupRead], links: .followed))
    }
  }

  /// Lines are appended to a log alone: at the end of a store, a pipeline or a model they would damage it.
  private static func checkLog(_ path: FilePath) throws {
    guard try FileKind(following: path) == .regular else { return }
    let start = String(
      decoding: try RegularFile.firstBytes(of: path, count: 8, links: .followed), as: UTF8.self)
    // The time is the first field of a line, see ``write(_:_:_:)``.
    if start.isEmpty || start.hasPrefix("time=") || start == #"{"time":"# { return }
    throw CommandError(
      .cannotCreateOutput, "output",
      "\(path) does not begin as a log of godwit does, and no lines are appended to it. Give another "
        + "path with --log.")
  }

  deinit {
    switch place {
    case .file(let file), .journal(let file): try? file.close()
    }
  }

  /// The fields of a line, in the order in which they are written.
  func write(_ level: Logger.Level, _ message: String, _ fields: [(name: String, value: String)]) {
    let failure: Errno?
    switch place {
    case .file(let file):
      let line = Self.line(
        form, [("time", Self.time()), ("level", level.rawValue), ("message", message)] + fields)
      // One call a line, so that the lines of two runs that append to one file do not mix.
      failure = Self.write(line + "\n", to: file)
    case .journal(let socket):
      failure = Self.write(Self.datagram(level, message, fields), to: socket)
    }
    guard let failure else { return }
    firstFailure.withLock { $0 = $0 ?? "A log line could not be written: \(failure)." }
  }

  private static func write(_ text: String, to file: FileDescriptor) -> Errno? {
    do {
      let count = text.utf8.count
      var text = text
      let written = try text.withUTF8 { try file.write(UnsafeRawBufferPointer($0)) }
      return written == count ? nil : .noSpace
    } catch {
      return error as? Errno ?? .ioError
    }
  }

  private static func time() -> String {
    // UTC, and says so.
    Date().formatted(
      .iso8601.year().month().day().timeZone(separator: .omitted)
        .time(includingFractionalSeconds: true))
  }
}

// The forms.
extension LogSink {
  static func line(_ form: LogForm, _ fields: [(name: String, value: String)]) -> String {
    switch form {
    case .logfmt:
      return fields.map { "\($0.name)=\(word($0.value))" }.joined(separator: " ")
    case .json:
      let members = fields.map { "\(quoted($0.name)):\(quoted($0.value))" }
      return "{" + members.joined(separator: ",") + "}"
    }
  }

  /// In quotation marks where it has something else than visible signs.
  private static func word(_ text: String) -> String {
    let isPlain =
      !text.isEmpty
      && text.unicodeScalars.allSatisfy {
        $0.value > 0x20 && $0 != "\"" && $0 != "=" && $0 != "\\" && !VisibleText.isControl($0)
      }
    return isPlain ? text : quoted(text)
  }

  /// As JSON has it, and without a sign that a terminal obeys: people watch a log there.
  private static func quoted(_ text: String) -> String {
    var quoted = ""
    for scalar in JSONLine.text(of: text).unicodeScalars {
      if VisibleText.isControl(scalar) {
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      } else {
        quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted
  }

  /// Fields of the journal's native protocol: names in capitals, and values with their length, since
  /// they may have any byte. Source: https://systemd.io/JOURNAL_NATIVE_PROTOCOL
  static func datagram(
    _ level: Logger.Level, _ message: String, _ fields: [(name: String, value: String)]
  ) -> String {
    let priority =
      switch level {
      case .trace, .debug: 7
      case .info: 6
      case .notice: 5
      case .warning: 4
      case .error: 3
      case .critical: 2
      }
    var text = "PRIORITY=\(priority)\nSYSLOG_IDENTIFIER=godwit\n"
    for (name, value) in [("message", message)] + fields {
      let field =
        name == "message" ? "MESSAGE" : "GODWIT_" + name.uppercased().replacing("-", with: "_")
      // A value of several lines needs its length; one of one line may stand as it is.
      text += "\(field)=\(value.replacing("\n", by: " "))\n"
    }
    return text
  }

  private static func openJournal() throws -> FileDescriptor {
    let path = "/run/systemd/journal/socket"
    func failed(_ number: Int32) -> CommandError {
      CommandError(
        .configuration, "log",
        "The journal cannot be used: \(path): \(Errno(rawValue: number)). Give --log a file.")
    }
    let socket = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { throw failed(errno) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let length = socklen_t(MemoryLayout<sockaddr_un>.size)
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, length) }
    }
    guard status == 0 else {
      let number = errno
      close(socket)
      throw failed(number)
    }
    return FileDescriptor(rawValue: socket)
  }
}

/// Log lines by way of swift-log: what is logged is decided by its level.
struct SinkLogHandler: LogHandler {
  let sink: LogSink
  var logLevel = Logger.Level.info
  var metadata = Logger.Metadata()

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let fields = metadata.merging(event.metadata ?? [:]) { $1 }
    sink.write(
      event.level, event.message.description,
      fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value.description) })
  }
}
