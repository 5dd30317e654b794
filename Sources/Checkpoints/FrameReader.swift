private import CZstd
internal import GodwitDigests
internal import SystemPackage

/// The uncompressed bytes of a checkpoint's zstd frame, in runs of the reader's choice.
///
/// At the end it proves that there is one frame, nothing behind it, and that its SHA-256 is right.
/// Memory is two pieces, the window, and twice the longest run asked for and there: a length that a
/// damaged file only claims costs nothing.
final class FrameReader {
  private let path: FilePath
  private let file: FileDescriptor
  private let expectedDigest: [UInt8]
  @exclusivity(unchecked) private var digest = SHA256()
  private let decompressor: OpaquePointer
  private let input: UnsafeMutableRawBufferPointer
  @exclusivity(unchecked) private var inputCount = 0
  @exclusivity(unchecked) private var inputPlace = 0
  /// Uncompressed bytes; those not read yet lie in `start..<end`.
  @exclusivity(unchecked) private var output: UnsafeMutableRawBufferPointer
  @exclusivity(unchecked) private var start = 0
  @exclusivity(unchecked) private var end = 0
  @exclusivity(unchecked) private var isFrameWhole = false

  private static let pieceByteCount = 256 << 10

  /// Takes over the file, which stands at its frame.
  init(path: FilePath, file: FileDescriptor, digest: [UInt8]) throws {
    guard let decompressor = ZSTD_createDCtx() else {
      try? file.close()
      throw CheckpointError.compressionFailed(path, reason: "it cannot start")
    }
    self.path = path
    self.file = file
    expectedDigest = digest
    self.decompressor = decompressor
    input = .allocate(byteCount: Self.pieceByteCount, alignment: 16)
    output = .allocate(byteCount: Self.pieceByteCount, alignment: 16)
    // A frame that wants a larger window is not ours, and could want a lot of memory.
    let code = ZSTD_DCtx_setParameter(
      decompressor, ZSTD_d_windowLogMax, Checkpoint.windowLog)
    guard ZSTD_isError(code) == 0 else {
      throw CheckpointError.compressionFailed(
        path, reason: String(cString: ZSTD_getErrorName(code)))
    }
  }

  deinit {
    ZSTD_freeDCtx(decompressor)
    try? file.close()
    input.deallocate()
    output.deallocate()
  }
}

extension FrameReader {
  var bufferByteCount: Int { input.count + output.count }

  /// The next `count` bytes, valid until the next call; `nil` at the very end.
  ///
  /// - Throws: When fewer bytes are left, or the frame proves wrong.
  func read(_ count: Int) throws -> UnsafeRawBufferPointer? {
    while end - start < count {
      makeRoom(for: count)
      if try decompress() { continue }
      if start == end { return nil }
      throw CheckpointError.damaged(path, .entryLength)
    }
    let bytes = UnsafeRawBufferPointer(rebasing: output[start..<start + count])
    start += count
    return bytes
  }

  /// Makes room behind the bytes that are there. The buffer grows only when it is full of one run,
  /// so it never exceeds twice what has really been decompressed for it.
  private func makeRoom(for count: Int) {
    if end < output.count, start + count <= output.count { return }
    let unread = UnsafeRawBufferPointer(rebasing: output[start..<end])
    if start > 0 {
      output.copyMemory(from: unread)
    } else if end == output.count {
      let larger = UnsafeMutableRawBufferPointer.allocate(
        byteCount: output.count * 2, alignment: 16)
      larger.copyMemory(from: unread)
      output.deallocate()
      output = larger
    }
    end -= start
    start = 0
  }

  /// Decompresses some more bytes. `false` at the end of the file, when all has proven right.
  private func decompress() throws -> Bool {
    while true {
      if inputPlace == inputCount { try fillInput() }
      if isFrameWhole {
        guard inputCount == 0 else { throw CheckpointError.damaged(path, .trailingBytes) }
        guard digest.finish() == expectedDigest else {
          throw CheckpointError.damaged(path, .digest)
        }
        return false
      }
      if inputCount == 0 { throw CheckpointError.truncated(path) }
      var source = ZSTD_inBuffer(src: input.baseAddress, size: inputCount, pos: inputPlace)
      var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: end)
      let rest = ZSTD_decompressStream(decompressor, &target, &source)
      guard ZSTD_isError(rest) == 0 else { throw CheckpointError.damaged(path, .frame) }
      let count = target.pos - end
      inputPlace = source.pos
      end = target.pos
      isFrameWhole = rest == 0
      if count > 0 { return true }
    }
  }

  /// Reads the next piece of the file; `inputCount` is 0 at its end.
  private func fillInput() throws {
    do {
      inputCount = try file.read(into: input)
    } catch let errno as Errno {
      throw CheckpointError.unreadable(path, errno)
    }
    inputPlace = 0
    if inputCount > 0 { digest.update(UnsafeRawBufferPointer(rebasing: input[..<inputCount])) }
  }
}
