import Synchronization
import SystemPackage

/// The pipe to the coordinator: answers and heartbeats come from different threads, each line
/// whole.
package final class WorkerOutput: Sendable {
  private let descriptor: Mutex<FileDescriptor>

  package init(_ descriptor: FileDescriptor) { self.descriptor = Mutex(descriptor) }

  func send(_ message: WorkerMessage) throws { try send(line: message.line()) }

  /// - Parameter line: With its line feed.
  package func send(line: [UInt8]) throws {
    try descriptor.withLock { descriptor in
      _ = try line.withUnsafeBytes { try descriptor.writeAll($0) }
    }
  }
}
